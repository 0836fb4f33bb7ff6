"""Training held against the direction predicted, by optimizer, step size, start and horizon."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from jaxtyping import Int

from attractor.attention import get_loss
from attractor.geometry import get_geometry
from attractor.maps.bias import named_optimizer
from attractor.maps.sweeps.experiment import Experiment
from attractor.maps.sweeps.experiments.parameters import (
    SIZES,
    Parameter,
    check_axes,
    check_rising,
    check_settings,
    check_sizes,
    combinations,
    draw_tokens,
    filled_in,
    text,
    token_parameters,
    token_sizes,
    word,
)
from attractor.maps.sweeps.experiments.runs import (
    MEASURES,
    OWN,
    SETTLED,
    START_PARAMETERS,
    check_trainable,
    layer_of,
    outcomes,
    start,
)
from attractor.maps.sweeps.grid import Grid
from attractor.support.checks import check_choice, check_count, check_items, check_steps
from attractor.support.errors import AttractorWarning, InvalidInputError, TrialStatus
from attractor.tokens.arrangement import Arrangement
from attractor.training import train
from attractor.training.mini_batches import ORDERS, check_batches

if TYPE_CHECKING:
    from attractor.training.optimizers import Optimizer

_NUMBERS = {
    "learning_rate": "learning rate; that behind the name of the optimizer, or 0.1",
    "learning_rate_exponent": "a in the learning rate eta (1 + (t - 1) / offset)^-a of step t",
    "learning_rate_offset": "offset in the same; 1",
    "weight_decay": "weight decay",
    "weight_decay_steps": "steps after which the weight decay is switched off",
    "dual_weight_decay": "weight decay of the dual variable of mirror descent",
    "eps": "what is added to the norm, or root of squares, that a step is divided by",
    "b1": "decay of the mean of gradients",
    "b2": "decay of the mean of squares",
    "decay": "decay of the momentum",
    "momentum": "decay of the momentum, of mirror descent and Muon",
    "scale": "share of the Polyak step taken",
}
"""Hyperparameters that are data of a trial: other values compile nothing, but for zero."""
_STRUCTURE = {
    "p": "exponent of mirror descent",
    "method": "how Muon and spectral descent make a matrix orthogonal",
    "coefficients": "those of their Newton-Schulz iterations, by name or as text",
    "newton_schulz_iterations": "iterations of Newton and Schulz in Muon",
    "iterations": "iterations of spectral descent's own method",
    "nesterov": "whether momentum and Muon look ahead",
    "bias_correction": "whether Adam and Muon correct averages for their start at zero",
}
HYPERPARAMETERS = (*_NUMBERS, *_STRUCTURE)
"""Settings of optimizers that may be axes; others stand behind the optimizer's name."""


def _as_given(name: str, value: Any) -> Any:
    return value  # judged by the optimizer that takes it


def _check_loss(name: str, value: Any) -> str:

    return text("", get_loss, "").check(name, value)


def _check_geometry(name: str, value: Any) -> str:
    return value if value == OWN else text("", get_geometry, "").check(name, value)


def _check_batch_size(name: str, value: Any) -> int | None:
    return None if value is None else check_count(name, value)


def _check_batch_order(name: str, value: Any) -> str:

    return check_choice(name, value, ORDERS)


def _check_geometries(given: Any) -> list[str]:
    names = check_items(_GEOMETRIES, given, str, 1)
    return [_check_geometry(_GEOMETRIES, name) for name in names]


def _check_horizons(name: str, value: Any) -> list[int]:
    return check_rising(name, [check_steps(name, one) for one in check_items(name, value, int, 1)])


PARAMETERS: dict[str, Parameter] = {
    **token_parameters(6, 8, 10),
    "optimizer": Parameter(
        "normalized gradient descent", _as_given, "optimizer, by a name that Attractor knows"
    ),
    **{name: Parameter(None, _as_given, words) for name, words in (_NUMBERS | _STRUCTURE).items()},
    "loss": Parameter("logistic", _check_loss, "loss"),
    "steps": Parameter(2000, check_steps, "training steps"),
    "batch_size": Parameter(None, _check_batch_size, "sequences in a step; all"),
    "batch_order": Parameter("random", _check_batch_order, "in which order they come"),
    **START_PARAMETERS,
    "geometry": Parameter(OWN, _check_geometry, "norm of the margin problem; the optimizer's own"),
    "arrangement": word(
        OWN, (OWN, *get_args(Arrangement)), "how attention heads are one matrix; as in training"
    ),
}

BATCHES = ("batch_size", "batch_order")
COMPILED_BY = (*SIZES, "optimizer", *_STRUCTURE, "parameterization", "loss", *BATCHES)
"""Parameters whose every value is another program."""

LOG_TIME = {
    "log_time": (
        "f8", "logarithm of the time that the same steps take without normalization (1)"
    )
}  # fmt: skip
"""The time, where it is defined: sum of the step sizes of the same algorithm, not normalized."""
_HORIZONS, _GEOMETRIES = "horizons", "geometries"


def train_and_verify(**settings: Any) -> Experiment:
    """Training by any optimizer that Attractor knows, held against the direction predicted.

    Args:
        **settings: Values of ``PARAMETERS``, which may also be axes of a grid; and ``horizons``,
            steps at which everything is measured as if training had ended there, in place of
            ``steps``. They are an axis of every measure, called ``step``. And ``geometries``, norms
            to measure one run in, in place of ``geometry``, of which they become the axis.

    Raises:
        InvalidInputError: If one is not known, or cannot be used.
    """
    rest = dict(settings)
    horizons, geometries = rest.pop(_HORIZONS, None), rest.pop(_GEOMETRIES, None)
    checked: dict[str, Any] = check_settings(PARAMETERS, rest, "train_and_verify")
    along = {}
    if horizons is not None:
        if "steps" in settings:
            raise InvalidInputError(
                _HORIZONS, "it stands beside steps", "Keep horizons: training ends at the last"
            )
        checked[_HORIZONS] = _check_horizons(_HORIZONS, horizons)
        along["step"] = checked[_HORIZONS]
    if geometries is not None:
        if "geometry" in settings:
            raise InvalidInputError(
                _GEOMETRIES, "it stands beside geometry", "Keep one of them: geometries are several"
            )
        checked[_GEOMETRIES] = _check_geometries(geometries)
        along["geometry"] = checked[_GEOMETRIES]
    return Experiment(
        "train_and_verify",
        MEASURES | LOG_TIME | (SETTLED if horizons is not None else {}),
        axes=tuple(PARAMETERS),
        compiled_by=COMPILED_BY,
        settings=checked,
        along=along,
        check="check",
    )


def check(grid: Grid, **settings: Any) -> None:
    """Checks all that a sweep would train with, before any of it.

    Raises:
        InvalidInputError: If a value cannot be used, an optimizer has no such hyperparameter, or
            no norm is known that it descends and none is named.
    """
    axes = grid.axes
    if settings.pop(_HORIZONS, None) and "steps" in axes:
        raise InvalidInputError(
            "axes['steps']", "the horizons say how long to train", "Leave out one of them"
        )
    named = settings.pop(_GEOMETRIES, None)
    check_axes(PARAMETERS, axes)
    check_sizes(PARAMETERS, axes, settings)
    for point in combinations(
        axes, ("optimizer", "parameterization", "gauge", "geometry", *HYPERPARAMETERS)
    ):
        given = filled_in(PARAMETERS, point, settings)
        descended = _descended(given, optimizer_of(given))
        if OWN in (named or [given["geometry"]]) and descended is None:
            raise InvalidInputError(
                "geometry",
                f"which norm {given['optimizer']} descends on {given['parameterization']} is not "
                "known",
                "Name the norm to solve in, such as frobenius",
            )
    check_trainable(PARAMETERS, axes, settings)
    for point in combinations(axes, (*SIZES, *BATCHES)):
        given = filled_in(PARAMETERS, point, settings)
        check_batches(given["batch_size"], given["batch_order"], token_sizes(given)[0])


def run(
    point: Mapping[str, Any],
    instances: Int[np.ndarray, "instances"],
    seeds: range,
    *,
    horizons: Sequence[int] | None = None,
    geometries: Sequence[str] | None = None,
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Trains every instance from every seed, and measures it; see ``MEASURES`` and ``LOG_TIME``.

    A trial that diverges has the status alone; all else of it is missing.

    Args:
        point: Values of the axes.
        instances: Numbers of the data sets.
        seeds: Seeds of initial parameters.
        horizons: Steps at which all is measured, as if training had ended there.
        geometries: Norms to measure in.
        **settings: Values of other parameters.
    """
    given = filled_in(PARAMETERS, point, settings)
    tokens, head = draw_tokens(given, instances)
    optimizer = optimizer_of(given)
    steps = list(horizons) if horizons else [given["steps"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        trained = train(
            tokens,
            head,
            optimizer,
            steps=steps[-1],
            seeds=len(seeds),
            seed=seeds.start,
            **start(given, tokens, instances, seeds),
            loss=given["loss"],
            batch_size=given["batch_size"],
            batch_order=given["batch_order"],
            record=[0, *steps],
            weights="all",
        )
        data = trained.data.transpose("instance", "seed", ...)
        taken = data["steps_taken"].to_numpy()
        reached: dict[float, Any] = {step: taken >= step for step in steps}
        each = [
            outcomes(trained, name, reached, arrangement=given["arrangement"])
            for name in geometries or [given["geometry"]]
        ]
    times = data["log_time"].sel(step=steps).transpose("instance", "seed", "step").to_numpy()
    for found in each:
        found["log_time"] = np.where(found["status"] == TrialStatus.DIVERGED, np.nan, times)
    together = {name: np.stack([found[name] for found in each], axis=-1) for name in each[0]}
    if not horizons:
        together = {name: together[name][:, :, 0] for name in (*MEASURES, *LOG_TIME)}
    return together if geometries else {name: values[..., 0] for name, values in together.items()}


def optimizer_of(given: Mapping[str, Any]) -> Optimizer:
    """The optimizer at a point, by its name and the hyperparameters given beside it.

    Raises:
        InvalidInputError: If there is none of that name, or it has no such hyperparameter.
    """
    own = {name: given[name] for name in HYPERPARAMETERS if given[name] is not None}
    rate = own.pop("learning_rate", None)
    spelling = given["optimizer"]
    if own and isinstance(spelling, str):
        written = ",".join(f"{name}={value}" for name, value in own.items())
        spelling = f"{spelling}{',' if ':' in spelling else ':'}{written}"
    return named_optimizer(spelling, rate)


def _descended(given: Mapping[str, Any], optimizer: Optimizer) -> Any:
    return optimizer.effective_geometry(layer_of(given))
