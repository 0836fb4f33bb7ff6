"""In-context regression: data, hypotheses on them, and flows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Measurement
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.regression import (
    BlockFlow,
    finite_flow as flow_on,
    infinite_flow,
    initial_scale_bounds,
    limit_horizon,
    trained_limit,
)
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.flows.isotropic_flow import isotropic_finite_flow
from attractor.prompts.regression.task import RegressionTask, kac_murdock_szego

LONG = (256, 1024, 4096)
"""Lengths of prompts, long enough for what long prompts do to be seen."""


@cache
def independent(
    dimension: int = 5, lengths: tuple[int, ...] = LONG, *, time: float = math.inf
) -> RegressionCase:
    """Standard normal inputs that are independent, labels without noise."""
    words = "until it converges" if math.isinf(time) else f"for a time of {time:g}"
    about = f"{dimension} independent inputs, gradient flow {words}"
    task = RegressionTask(np.eye(dimension))
    return RegressionCase(task, lengths, 0.2, time=time, about=about)


@cache
def correlated(dimension: int = 5, scale: float = 0.2) -> RegressionCase:
    """Inputs with the Kac-Murdock-Szego covariance of correlation 1/2."""
    task = RegressionTask(kac_murdock_szego(dimension, 0.5))
    about = f"{dimension} inputs of correlation 1/2 between neighbors, start {scale:g}"
    return RegressionCase(task, LONG, scale, about=about)


@cache
def unequal(first: float = 1.0, second: float = 2.0) -> RegressionCase:
    """Two independent inputs of different variances."""
    task = RegressionTask(np.diag([first, second]))
    return RegressionCase(task, LONG, 0.2, about=f"inputs of variances {first:g} and {second:g}")


@cache
def random_task(seed: int, dimension: int = 3) -> RegressionCase:
    """Inputs of a random covariance, started at half the bound on the scale."""
    draws = np.random.default_rng([seed, 5, dimension])
    factor = draws.standard_normal((dimension, 2 * dimension))
    covariance = factor @ factor.T / (2 * dimension)
    scale = initial_scale_bounds(covariance).large_prompt / 2
    about = f"{dimension} inputs of a random covariance, seed {seed}"
    return RegressionCase(RegressionTask(covariance), LONG, scale, about=about)


@cache
def small_input() -> RegressionCase:
    """One input of variance 1/4 started at 4, below one bound on the scale and above another."""
    about = "one input of variance 1/4, start 4"
    return RegressionCase(RegressionTask(np.array([[0.25]])), (256,), 4.0, about=about)


def noisy(case: RegressionCase) -> RegressionCase:
    """The case with noise in the labels of the prompt."""
    return case.replace(task=replace(case.task, label_noise=0.5))


_ROUNDING = 1e-9
_FEWEST_TOKENS = 16
_LONGEST_TIME = 5.0
_NARROW = 0.6
_MODERATE = 1.25
_FEW_INPUTS = 3
MOST_INPUTS = 64
"""Independent inputs up to which exact flows on finite prompts are followed here."""
_MOST_DEPENDENT = 20


def _independent(case: RegressionCase) -> Check:
    task = case.task
    identity = np.eye(task.dimension)
    off = max(
        float(np.abs(matrix - identity).max())
        for matrix in (task.covariance, task.query_covariance)
    )
    standard = off <= _ROUNDING and abs(task.weight_variance - 1) <= _ROUNDING
    found = f"{task.dimension} inputs, covariances off the identity by {off:.3g}, "
    met = standard and task.dimension <= MOST_INPUTS
    return Check(met, found + f"weights of variance {task.weight_variance:.3g}")


INDEPENDENT = Assumption[RegressionCase](
    "independent inputs",
    f"Inputs, query and weights are independent standard normal, at most {MOST_INPUTS} of each, so "
    "that risks of finite prompts are known exactly.",
    _independent,
    correlated,
)


def _followed(case: RegressionCase) -> Check:
    s, queries = case.task.covariance, case.task.query_covariance
    off = float(np.abs(s @ queries - queries @ s).max())
    common = off <= _ROUNDING * float(np.abs(s).max() * np.abs(queries).max())
    few = case.task.dimension <= _MOST_DEPENDENT or _independent(case).met
    found = f"{case.task.dimension} inputs, the covariances {'' if common else 'do not '}commute"
    return Check(common and few, found)


FOLLOWED = Assumption[RegressionCase](
    "flows that can be followed",
    "Inputs of the query have the axes of the prompt's, and there are at most "
    f"{_MOST_DEPENDENT}, or {MOST_INPUTS} independent ones, so that exact flows take a minute.",
    _followed,
    lambda: correlated(_MOST_DEPENDENT + 1),
)


NOISELESS = Assumption[RegressionCase](
    "labels without noise",
    "Labels of the prompt have no noise.",
    lambda case: Check(
        case.task.label_noise == 0, f"noise of variance {case.task.label_noise:.3g}"
    ),
    lambda: noisy(independent()),
)
SOME_NOISE = NOISELESS.negated("some noise", "Labels of the prompt have noise.", independent)


def rounding(covariance: Float[np.ndarray, "d d"]) -> float:
    """What rounding leaves of a covariance, relative to it in the direction of least variance.

    The entries are known to an eps of the largest, which is the condition number times as much of
    the least variance; and so is an inverse.
    """
    variances = np.linalg.eigvalsh(covariance)
    return len(variances) * float(np.finfo(np.float64).eps * variances[-1] / variances[0])


def _same_queries(case: RegressionCase) -> Check:
    s = case.task.covariance
    variances, axes = np.linalg.eigh(s)
    standard = axes / np.sqrt(variances)  # inputs have variance one along these, each counts alike
    difference = standard.T @ (case.task.query_covariance - s) @ standard
    off = float(np.linalg.norm(difference, ord=2))
    return Check(
        off <= _ROUNDING + rounding(s), f"variances differ by a factor of up to 1 +- {off:.3g}"
    )


SAME_QUERIES = Assumption[RegressionCase](
    "queries like inputs",
    "Inputs of the query have the covariance of the prompt's.",
    _same_queries,
    lambda: independent().replace(task=replace(independent().task, query_covariance=2 * np.eye(5))),
)


def _queried(case: RegressionCase) -> Check:
    variances = np.linalg.eigvalsh(case.task.query_covariance)
    least = len(variances) * np.finfo(np.float64).eps * variances[-1]
    found = f"their variances are from {max(variances[0], 0):.3g} to {variances[-1]:.3g}"
    return Check(bool(variances[0] > least), found)


def unqueried(case: RegressionCase) -> RegressionCase:
    """The case with no query along its last input."""
    queries = case.task.query_covariance.copy()
    queries[-1] = queries[:, -1] = 0
    return case.replace(
        task=replace(case.task, query_covariance=queries),
        about=f"{case.about}, no query along the last one",
    )


QUERIES_EVERYWHERE = Assumption[RegressionCase](
    "queries in all directions",
    "Inputs of the query vary in all directions: what a head does in others is never trained.",
    _queried,
    lambda: unqueried(unequal()),
)


def _balanced(case: RegressionCase) -> Check:
    found = f"||A|| = {case.initial_scale:.4g} and b = {case.value:.4g}"
    return Check(abs(case.value - case.initial_scale) <= _ROUNDING * case.value, found)


BALANCED = Assumption[RegressionCase](
    "balanced start",
    "Training starts with ||A|| = b, and c = v = 0.",
    _balanced,
    lambda: independent().replace(initial_value=1.0),
)


UNBALANCED = BALANCED.negated(
    "start without balance", "Training starts with ||A|| other than b, and c = v = 0.", independent
)


def _small_start(case: RegressionCase) -> Check:
    bound = initial_scale_bounds(case.task.covariance).large_prompt
    found = f"the scale is {case.initial_scale:.4g}, the bound {bound:.4g}"
    return Check(case.initial_scale < bound, found)


SMALL_START = Assumption[RegressionCase](
    "scale below the bound",
    "The scale of the start is below sqrt(2) / (d^(1/4) ||Sigma||).",
    _small_start,
    lambda: independent().replace(initial_scale=1.5),
)


def _lengths(case: RegressionCase) -> str:
    return f"prompts of {', '.join(f'{length:,}' for length in case.lengths)} tokens"


SEVERAL_LENGTHS = Assumption[RegressionCase](
    "several lengths",
    "Prompts of two lengths or more are given.",
    lambda case: Check(len(case.lengths) > 1, _lengths(case)),
    lambda: independent(5, (256,)),
)
SOME_TOKENS = Assumption[RegressionCase](
    "prompts of some length",
    f"No prompt is shorter than {_FEWEST_TOKENS} tokens.",
    lambda case: Check(min(case.lengths) >= _FEWEST_TOKENS, _lengths(case)),
    lambda: independent(5, (4, 256)),
)
SHORT_PROMPTS = Assumption[RegressionCase](
    "short prompts",
    f"Prompts have 3 to {_FEWEST_TOKENS} tokens.",
    lambda case: Check(
        3 <= min(case.lengths) and max(case.lengths) <= _FEWEST_TOKENS, _lengths(case)
    ),
    lambda: independent(5, (256,)),
)


def _time(case: RegressionCase) -> str:
    return "until it converges" if math.isinf(case.time) else f"for a time of {case.time:.4g}"


FIXED_TIME = Assumption[RegressionCase](
    "a fixed time",
    f"Gradient flow runs for a given time, {_LONGEST_TIME:g} at most.",
    lambda case: Check(case.time <= _LONGEST_TIME, _time(case)),
    independent,
)
LONG_TRAINING = Assumption[RegressionCase](
    "training until it rests",
    "Gradient flow runs until it converges.",
    lambda case: Check(math.isinf(case.time), _time(case)),
    lambda: independent(time=2.0),
)


def horizon(case: RegressionCase) -> float:
    """The horizon of the balanced trained head."""
    return trained_limit(case.task).horizon


def _scaled(dimension: int, variance: float) -> RegressionCase:
    task = RegressionTask(variance * np.eye(dimension))
    return RegressionCase(task, about=f"{dimension} inputs of variance {variance:g}")


WIDE = Assumption[RegressionCase](
    "horizon above 0.707",
    "At the balanced trained head the average of exp(s^2) over queries is infinite.",
    lambda case: Check(horizon(case) ** 2 > 0.5, f"the horizon is {horizon(case):.4g}"),
    lambda: independent(9),
)
FEW_INPUTS = Assumption[RegressionCase](
    f"{_FEW_INPUTS} inputs at most",
    "At the balanced trained head scores vary alike along all inputs, and with many of them powers "
    "of log L hide the exponent at every length in use.",
    lambda case: Check(
        case.task.dimension <= _FEW_INPUTS, f"there are {case.task.dimension} inputs"
    ),
    lambda: _scaled(4, 2.0),
)
MODERATE = Assumption[RegressionCase](
    f"horizon at most {_MODERATE:g}",
    "At the balanced trained head scores are so narrow that exponents which are near to one "
    "another for wide ones can be told apart.",
    lambda case: Check(horizon(case) <= _MODERATE, f"the horizon is {horizon(case):.4g}"),
    lambda: _scaled(1, 4.0),
)
NARROW = Assumption[RegressionCase](
    f"horizon at most {_NARROW:g}",
    "At the balanced trained head the average of exp(s^2) over queries is finite by a margin.",
    lambda case: Check(horizon(case) <= _NARROW, f"the horizon is {horizon(case):.4g}"),
    lambda: independent(1),
)


def perfect_horizon(case: RegressionCase) -> float:
    """The horizon of ``A = Sigma^-1 / b`` with ``b`` as at the start."""
    zeros = np.zeros(case.task.dimension)
    inverse = np.linalg.inv(case.task.covariance)
    head = Blocks(inverse / case.value, zeros, zeros, np.array(case.value))
    return float(limit_horizon(case.task, head))


NARROW_START = Assumption[RegressionCase](
    f"value with a horizon of at most {_NARROW:g}",
    "With b as at the start, the A that predicts exactly from infinite prompts has narrow scores.",
    lambda case: Check(
        perfect_horizon(case) <= _NARROW,
        f"b is {case.value:.4g} and the horizon {perfect_horizon(case):.4g}",
    ),
    lambda: independent(4),
)

REGRESSION_HYPOTHESES = (
    INDEPENDENT,
    FOLLOWED,
    NOISELESS,
    SAME_QUERIES,
    QUERIES_EVERYWHERE,
    BALANCED,
    SMALL_START,
    SEVERAL_LENGTHS,
    SOME_TOKENS,
    SHORT_PROMPTS,
    FIXED_TIME,
    LONG_TRAINING,
    WIDE,
    FEW_INPUTS,
    MODERATE,
    NARROW,
    NARROW_START,
)
"""The hypotheses reported of a user's regression task."""


_LONGEST = 1e9
"""In units of the time in which the slowest direction of the trained head moves, if that is longer
than one."""
_RECORDS = 60
_TOLERANCE, _FINE_TOLERANCE = 1e-9, 1e-11
"""Of flows that end at rest, and of those that are compared on their way."""


def time_to_rest(case: RegressionCase, moment: Float[np.ndarray, "d d"] | None = None) -> float:
    """A time after which a flow on prompts of infinite length, or of linear attention, rests.

    Args:
        case: The data.
        moment: The matrix ``G`` with ``b A = G^-1`` in the limit; the covariance if None.
    """
    task = case.task
    inputs, queries = map(np.linalg.eigvalsh, (task.covariance, task.query_covariance))
    moments = inputs if moment is None else np.linalg.eigvalsh(moment)
    least = queries[queries > queries[-1] * len(queries) * np.finfo(np.float64).eps][0]
    value = float(np.linalg.norm(1 / moments))  # b^2 of the balanced trained head
    slowest = value * inputs[0] * moments[0] * least * task.weight_variance
    return _LONGEST / min(1.0, slowest)


def clock(case: RegressionCase) -> Float[np.ndarray, "time"]:
    """The times at which flows of a case are recorded, up to its time or to convergence."""
    if math.isfinite(case.time):
        return np.linspace(0, case.time, _RECORDS)
    return np.concatenate([[0], np.geomspace(0.05, time_to_rest(case), _RECORDS)])


@once
def finite_flow(case: RegressionCase, length: int) -> BlockFlow:
    """The flow on finite prompts."""
    if not INDEPENDENT.check(case).met or case.value != case.initial_scale:
        tolerance = _TOLERANCE if math.isinf(case.time) else _FINE_TOLERANCE
        return flow_on(case.task, length, case.start, clock(case), tolerance=tolerance)
    # A and b are two numbers, which are followed many times as fast.
    d, noise = case.task.dimension, case.task.label_noise
    found = vars(
        isotropic_finite_flow(
            d, length, case.initial_scale, clock(case), label_noise=noise, tolerance=_TOLERANCE
        )
    )
    norm, value = found["parameters"]
    zeros = np.zeros((len(value), d))
    blocks = Blocks(norm[:, None, None] / math.sqrt(d) * np.eye(d), zeros, zeros, value)
    kept = {name: found[name] for name in ("times", "risk", "_compiled", "_path")}
    return BlockFlow(parameters=blocks, **kept)


@once
def fixed_value_flow(case: RegressionCase, length: int) -> BlockFlow:
    """The flow of ``A`` alone on finite prompts, with ``b`` fixed at its start."""
    return flow_on(case.task, length, case.start, clock(case), value="fixed", tolerance=_TOLERANCE)


@once
def limit_flow(case: RegressionCase) -> BlockFlow:
    """The flow on infinite prompts."""
    return infinite_flow(case.task, case.start, clock(case))


def balanced_head(product: Float[np.ndarray, "d d"]) -> Blocks:
    """The head with ``b A = product`` and ``||A|| = b``, and nothing else."""
    b = math.sqrt(float(np.linalg.norm(product)))
    zeros = np.zeros(len(product))
    return Blocks(product / b, zeros, zeros, np.array(b))


def off_balanced(
    trained: Blocks, product: Float[np.ndarray, "d d"], details: Mapping[str, Any]
) -> Measurement:
    """Relative distance of a trained head from the balanced one with ``b A = product``.

    Args:
        trained: The trained head.
        product: The product.
        details: What to tell beside it.
    """
    limit = balanced_head(product)
    pairs = zip(trained, limit, strict=True)
    square = sum(float(np.sum((found - wanted) ** 2)) for found, wanted in pairs)
    b = float(limit.value_label)
    told = {"b": float(trained.value_label), "b of the limit": b}
    told["balance"] = float(trained.balance)
    return Measurement(math.sqrt(square / 2) / b, details=told | dict(details))


def path_of(flow: BlockFlow) -> Float[np.ndarray, "time parameter"]:
    """The entries of ``A``, and ``b``, along a flow of one head."""
    a, b = flow.blocks.key_query, flow.blocks.value_label
    return np.concatenate([a.reshape(len(b), -1), b[:, None]], axis=1)


def gaps(
    case: RegressionCase, lengths: tuple[int, ...], path: Float[np.ndarray, "time parameter"]
) -> Float[np.ndarray, "length time"]:
    """Distances of the flow on prompts of some lengths from a path.

    Args:
        case: The data.
        lengths: Numbers of tokens.
        path: ``A`` and ``b`` at the times of ``clock``, as of ``path_of``.
    """
    flows = (path_of(finite_flow(case, length)) for length in lengths)
    return np.array([np.linalg.norm(flow - path, axis=1) for flow in flows])
