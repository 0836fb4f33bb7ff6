"""Long prompts: attention over laws of tokens, errors of finite prompts, lengths, regression."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tools.golden.collect import of
from tools.golden.drawn import selected, unit

Results = Iterator[tuple[str, Callable[[], Any]]]
POINTS = np.array([[0.1, -0.2], [0.3, 0.5], [-1.0, 0.4]])
KEYS = np.array([[1.0, 0.5], [0.0, 1.0]])
TIMES = np.array([0.0, 1.0, 10.0])
LENGTHS = (4, 30, 1000)


@functools.cache
def laws() -> dict[str, Any]:
    """Laws of tokens in the plane."""
    from attractor.prompts import measures

    gaussian, uniform = measures.Gaussian([0.1, -0.2], KEYS @ KEYS.T), measures.Uniform(1.3, 2)
    return {
        "gaussian": gaussian,
        "uniform": uniform,
        "laplace": measures.Laplace(0.2, 2),
        "rademacher": measures.Rademacher(2),
        "sphere": measures.Sphere(2, 1.2),
        "mixture": measures.Mixture([0.3, 0.7], [gaussian, uniform]),
        "empirical": measures.Empirical(unit(3, 6, 2)),
        "convolution": measures.Convolution(gaussian, uniform),
        "pushforward": measures.Pushforward(uniform, KEYS),
    }


def measures() -> Results:
    """Moments, attention and its gradients under each law, and errors of finite prompts."""
    from attractor import prompts

    head = prompts.AttentionHead(0.4 * KEYS, KEYS.T)
    for name, law in laws().items():
        yield f"{name}, tilt", lambda law=law: law.tilt(0.3 * POINTS)
        yield f"{name}, draws", lambda law=law: law.sample(5, seed=0)
        yield (
            f"{name}, output",
            lambda law=law: [
                prompts.output(law, head, POINTS),
                prompts.output_jacobian(law, head, POINTS),
                prompts.head_gradients(law, head, POINTS, POINTS),
            ],
        )
        yield f"{name}, error", lambda law=law: prompts.measure_output_error(law, head, POINTS, 12)
    for length in LENGTHS:
        yield (
            f"measure-error, {length}",
            functools.partial(prompts.measure_error, laws()["gaussian"], head, POINTS, length),
        )
    yield (
        "drawn",
        functools.partial(
            prompts.monte_carlo_error, laws()["uniform"], head, POINTS, 40, prompts=20, seed=0
        ),
    )


def finite() -> Results:
    """Exact integrals of finite prompts of normal scores."""
    from attractor import prompts
    from attractor.prompts import finite_length as finite

    deviations = np.array([0.1, 1.0, 3.0])
    averages = (
        finite.covariance_moments, finite.mean_output, finite.output_error,
        finite.output_second_moment, finite.prompt_moments, finite.sum_of_squared_weights,
        prompts.effective_sample_size,
    )  # fmt: skip
    for average in averages:
        for length in LENGTHS:
            name = f"{average.__name__}, {length}"
            yield name, lambda average=average, length=length: average(deviations, length)
    yield "freezing", lambda: [prompts.freezing_length(one) for one in deviations]
    yield "exponent", lambda: [finite.error_exponent(one) for one in (0.1, 0.5, 2.0)]
    yield "table", lambda: finite.error_table([10.0, 100.0]).coefficients
    matrices = (KEYS @ KEYS.T, 0.5 * KEYS, KEYS.T)
    yield "errors", lambda: finite.finite_length_error(*matrices, POINTS, 20)
    yield "averaged", lambda: finite.averaged_error_of_output(*matrices, np.eye(2), 20)
    yield "two-heads", lambda: finite.two_head_moments(KEYS @ KEYS.T, 20)


def lengths() -> Results:
    """How long a prompt must be, and what scores alone prove."""
    from attractor import prompts
    from attractor.prompts import length

    head, law = prompts.AttentionHead(0.4 * KEYS, KEYS.T), laws()["gaussian"]
    yield (
        "prompt-length",
        lambda: of(
            prompts.prompt_length(head, law, POINTS),
            "required required_for_output horizon out_of_reach score_deviation curves",
        ),
    )
    yield "defect", lambda: prompts.non_gaussian_defect(head, laws()["uniform"], POINTS)
    yield "required", lambda: [length.required_length(one, 0.1) for one in (0.5, 1.5)]
    yield "rows", lambda: prompts.row_concentration(unit(4, 3, 5))
    yield (
        "certified",
        lambda: [
            prompts.certified_concentration(selected()[3]).top_probability_bound(norm=one)
            for one in (1.0, 10.0)
        ],
    )


def regression() -> Results:
    """In-context regression: risks, optima, flows, limits and training."""
    from attractor.prompts import regression

    task = regression.RegressionTask(np.array([[1.0, 0.5], [0.5, 1.0]]))
    blocks = functools.partial(regression.balanced_initialization, task.covariance, 0.5)
    for name in ("infinite_risk", "leading_order", "limit_horizon"):
        yield name, lambda name=name: getattr(regression, name)(task, blocks())
    for name in ("linear_attention_risk", "softmax_risk"):
        yield name, lambda name=name: getattr(regression, name)(task, blocks(), 10)
    scalar = regression.RegressionTask(np.eye(1))
    for name in ("linear_attention_optimum", "small_score_optimum"):
        yield name, lambda name=name: getattr(regression, name)(task, 10)
    yield "softmax_optimum", lambda: regression.softmax_optimum(scalar, 10)
    yield "opposite_heads", lambda: regression.opposite_heads_optimum(scalar, 10)
    yield "isotropic", lambda: regression.isotropic_optimum(2, 100)
    yield "ridge", lambda: regression.ridge_risk(task, 5, samples=100)
    yield "limits", lambda: [regression.finite_prompt_limit(task), regression.trained_limit(task)]
    flow = "times parameters risk"
    yield "flow", lambda: of(regression.infinite_flow(task, 0.2, TIMES), flow)
    yield "finite-flow", lambda: of(regression.finite_flow(task, 20, 0.2, TIMES), flow)
    yield "linear-flow", lambda: of(regression.linear_attention_flow(task, 0.2, TIMES, 20), flow)
    for length in (8, np.inf):
        train = functools.partial(
            regression.train_in_context, task, length=length, steps=50, batch=8, held_out=32
        )
        yield f"trained, {length}", lambda train=train: train().data


def in_context() -> Results:
    """In-context tasks of any kind."""
    from attractor.prompts import in_context

    for name, task in in_context.built_in().items():
        yield f"sample, {name}", lambda task=task: of(task.sample(4, 4), "prompts queries labels")
    one = in_context.LinearRegression(_regression_task())
    yield (
        "transfer",
        lambda: in_context.risk_transfer(one, [2, 8], [0.0, 0.5], tasks=8, held_out=8).data,
    )


def _regression_task() -> Any:
    from attractor.prompts.regression import RegressionTask

    return RegressionTask(np.eye(2))


ADAPTERS = {
    "law": measures, "finite": finite, "length": lengths, "regression": regression,
    "in-context": in_context,
}  # fmt: skip
