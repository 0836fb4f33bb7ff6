"""Risks of in-context linear regression: of the best softmax and linear heads, and of trained."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.maps.sweeps.experiment import Experiment
from attractor.maps.sweeps.experiments.parameters import (
    check_axes,
    check_settings,
    count,
    filled_in,
    number,
    one_seed,
    word,
)
from attractor.maps.sweeps.grid import Grid
from attractor.prompts.regression import (
    RegressionTask,
    kac_murdock_szego,
    linear_attention_optimum,
    ridge_risk,
    softmax_optimum,
    train_in_context,
)
from attractor.support.errors import AttractorWarning, InvalidInputError
from attractor.support.randomness import generator

RANDOM = "random"
"""A covariance of its own for every instance."""
_SAMPLES = 2
"""Samples for each dimension that a random covariance is that of."""

PARAMETERS = {
    "length": count(32, "tokens of a prompt"),
    "dimension": count(5, "inputs"),
    "noise": number(0.1, "variance of the noise of labels", least=0.0, example=0.1),
    "covariance": word(
        "kac_murdock_szego",
        ("kac_murdock_szego", RANDOM),
        "covariance of inputs: correlations that decay with distance, or one for each instance",
    ),
    "correlation": number(
        0.5, "of neighboring inputs, without a random covariance", above=-1.0, below=1.0,
        example=0.5,
    ),
    "weight_variance": number(
        None, "variance of every weight; 1 / dimension", above=0.0, example=0.2
    ),
    "ridge_samples": count(2000, "matrices that the risk of ridge regression is the mean over"),
    "steps": count(0, "training steps; 0 trains nothing", least=0),
    "learning_rate": number(0.1, "of gradient descent", above=0.0, example=0.1),
    "batch": count(128, "prompts of a step"),
    "parameterization": word("blocks", ("blocks", "all_blocks", "factors"), "what is trained"),
    "initialization": word("balanced", ("balanced", "default"), "where training starts"),
}  # fmt: skip

_AXES = tuple(name for name in PARAMETERS if name != "steps")
_COMPILED_BY = ("length", "dimension", "batch", "parameterization")
"""Shapes of arrays; the numbers of a task are data of one program, but for labels without noise."""

EXACT = {
    "risk_of_zero": ("f8", "risk of predicting zero (squared label, halved)"),
    "softmax_risk": ("f8", "risk of the best softmax head (squared label, halved)"),
    "linear_risk": ("f8", "risk of the best head of linear attention (squared label, halved)"),
    "ridge_risk": ("f8", "least risk of all predictors, by ridge (squared label, halved)"),
    "ridge_error": ("f8", "standard error of ridge_risk (squared label, halved)"),
    "softmax_over_linear": ("f8", "risk of the best softmax head over that of the linear one (1)"),
}
"""Risks that need no training."""
TRAINED = {
    "trained_softmax_risk": ("f8", "risk of trained softmax attention (squared label, halved)"),
    "trained_softmax_error": ("f8", "standard error of that (squared label, halved)"),
    "trained_linear_risk": ("f8", "risk of trained linear attention (squared label, halved)"),
    "softmax_status": ("i1", "how the training of softmax attention ended, 0 as it should"),
    "linear_status": ("i1", "how the training of linear attention ended, 0 as it should"),
}
"""Risks measured after training, where there are steps."""


def in_context_risks(**settings: Any) -> Experiment:
    """Risks of in-context linear regression by length, dimension and noise.

    Args:
        **settings: Values of ``PARAMETERS``, which may also be axes of a grid. With ``steps`` above
            0 both kinds of attention are trained, too, from every seed.

    Raises:
        InvalidInputError: If one is not known, or cannot be used.
    """
    checked = check_settings(PARAMETERS, settings, "in_context_risks")
    return Experiment(
        "in_context_risks",
        EXACT | TRAINED if checked.get("steps") else EXACT,
        axes=_AXES,
        compiled_by=_COMPILED_BY,
        settings=checked,
        check="check",
    )


def check(grid: Grid, **settings: Any) -> None:
    """Checks all that a sweep would compute, before any of it.

    Raises:
        InvalidInputError: If a value cannot be used, or there are several seeds, or instances, on
            which nothing depends.
    """
    check_axes(PARAMETERS, grid.axes)
    if not settings.get("steps"):
        one_seed(grid.seeds, "in_context_risks without training steps")
    laws = grid.axes.get("covariance", (settings.get("covariance"),))
    if grid.instances > 1 and set(laws) != {RANDOM}:
        raise InvalidInputError(
            "instances",
            f"{grid.instances} of them would have the same numbers, as they have one covariance",
            f"Give 1, or covariance = {RANDOM!r}",
        )


def run(
    point: Mapping[str, Any],
    instances: Int[np.ndarray, "instances"],
    seeds: range,
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Computes the risks of every instance; see ``EXACT`` and ``TRAINED``.

    Where the best softmax head attends to one token alone its risk is missing.

    Args:
        point: Values of the axes.
        instances: Numbers of the tasks.
        seeds: Seeds of training.
        **settings: Values of other parameters.
    """
    given = filled_in(PARAMETERS, point, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        rows = [_risks(given, int(instance), seeds) for instance in instances]
    shape = (len(instances), len(seeds))
    return {
        name: np.stack([np.broadcast_to(row[name], shape[1:]) for row in rows]) for name in rows[0]
    }


def _risks(given: Mapping[str, Any], instance: int, seeds: range) -> dict[str, Any]:
    """The risks of one task."""
    d, length = given["dimension"], given["length"]
    variance = given["weight_variance"]
    task = RegressionTask(
        _covariance(given, instance),
        weight_variance=1 / d if variance is None else variance,
        label_noise=given["noise"],
    )
    linear = linear_attention_optimum(task, length).risk
    ridge = ridge_risk(task, length, samples=given["ridge_samples"], seed=instance)
    softmax = softmax_optimum(task, length).risk
    found = {
        "risk_of_zero": task.risk_of_zero,
        "softmax_risk": softmax,
        "linear_risk": linear,
        "ridge_risk": ridge.risk,
        "ridge_error": ridge.standard_error,
        "softmax_over_linear": softmax / linear,
    }
    return found | (_trained(task, given, seeds) if given["steps"] else {})


def _covariance(given: Mapping[str, Any], instance: int) -> Float[np.ndarray, "d d"]:
    """The covariance of the inputs, of which each has variance 1 on average."""
    d = given["dimension"]
    if given["covariance"] != RANDOM:
        return kac_murdock_szego(d, given["correlation"])
    drawn = generator(0, instance, purpose="covariance of an in-context task")
    inputs = drawn.standard_normal((_SAMPLES * d, d))
    moments = inputs.T @ inputs
    return moments * (d / np.trace(moments))


def _trained(task: Any, given: Mapping[str, Any], seeds: range) -> dict[str, np.ndarray]:
    """Risks at the end of training, for each seed."""
    found = {}
    for attention in ("softmax", "linear"):
        trained = train_in_context(
            task,
            length=given["length"],
            steps=given["steps"],
            attention=attention,
            parameterization=given["parameterization"],
            initialization=given["initialization"],
            learning_rate=given["learning_rate"],
            batch=given["batch"],
            seeds=len(seeds),
            seed=seeds.start,
            record=[given["steps"]],
        ).data.isel(step=-1)
        found[f"trained_{attention}_risk"] = trained["risk"].to_numpy()
        found[f"{attention}_status"] = trained["status"].to_numpy().astype(np.int8)
        if attention == "softmax":
            found["trained_softmax_error"] = trained["risk_error"].to_numpy()
    return found
