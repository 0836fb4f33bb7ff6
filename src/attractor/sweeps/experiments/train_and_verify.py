"""Training held against the direction predicted, by optimizer, step size, start and horizon."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attractor.checks import check_items, check_number, check_steps
from attractor.errors import AttractorWarning, InvalidInputError, TrialStatus
from attractor.geometry import get_geometry
from attractor.sweeps.experiment import Experiment
from attractor.sweeps.experiments.parameters import (
    Parameter,
    check_axes,
    check_settings,
    combinations,
    filled_in,
    text,
)
from attractor.sweeps.experiments.token_data import (
    SIZES,
    check_sizes,
    draw_tokens,
    token_parameters,
)
from attractor.sweeps.grid import Grid

if TYPE_CHECKING:
    from attractor.attention import Parameterization
    from attractor.training import Trajectory
    from attractor.training.optimizers import Optimizer

OWN = "own"
"""The geometry that the optimizer descends."""

_NUMBERS = {
    "learning_rate": "learning rate; that behind the name of the optimizer, or 0.1",
    "weight_decay": "weight decay",
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
    "newton_schulz_iterations": "iterations of Newton and Schulz in Muon",
    "iterations": "iterations of spectral descent's own method",
}
HYPERPARAMETERS = (*_NUMBERS, *_STRUCTURE)
"""Settings of optimizers that may be axes; others stand behind the optimizer's name."""


def _as_given(name: str, value: Any) -> Any:
    return value  # judged by the optimizer that takes it


def _check_loss(name: str, value: Any) -> str:
    from attractor.attention import get_loss

    return text("", get_loss, "").check(name, value)


def _check_parameterization(name: str, value: Any) -> str:
    from attractor.attention import get_parameterization

    return text("", get_parameterization, "").check(name, value)


def _check_geometry(name: str, value: Any) -> str:
    return value if value == OWN else text("", get_geometry, "").check(name, value)


def _check_horizons(name: str, value: Any) -> list[int]:
    listed = [check_steps(name, step) for step in check_items(name, value, int, 1)]
    if listed != sorted(set(listed)):
        raise InvalidInputError(name, f"they are {listed}", "Give them once each, in rising order")
    return listed


PARAMETERS: dict[str, Parameter] = {
    **token_parameters(6, 8, 10),
    "optimizer": Parameter(
        "normalized gradient descent", _as_given, "optimizer, by a name that Attractor knows"
    ),
    **{name: Parameter(None, _as_given, words) for name, words in (_NUMBERS | _STRUCTURE).items()},
    "parameterization": Parameter("W", _check_parameterization, "what is trained"),
    "loss": Parameter("logistic", _check_loss, "loss"),
    "steps": Parameter(2000, check_steps, "training steps"),
    "initial_scale": Parameter(
        1.0,
        lambda name, it: check_number(name, it, least=0.0, example=1.0),
        "factor on initial parameters, which are uniform on [-1/sqrt(d), 1/sqrt(d)]",
    ),
    "geometry": Parameter(OWN, _check_geometry, "norm of the margin problem; the optimizer's own"),
}

COMPILED_BY = (*SIZES, "optimizer", *_STRUCTURE, "parameterization", "loss")
"""Parameters whose every value is another program."""

MEASURES = {
    "margin_ratio": (
        "f8", "normalized margin ratio: margin of W per norm, over the largest possible (1)"
    ),
    "correlation": ("f8", "cosine between W and the solution (1)"),
    "kkt_residual": ("f8", "largest violation of a condition for optimality by W's direction (1)"),
    "norm": ("f8", "norm of W in the geometry of the margin problem (1)"),
    "training_loss": ("f8", "training loss (1)"),
    "selected_probability": ("f8", "mean attention on the tokens selected (1)"),
    "log_unselected_probability": ("f8", "logarithm of the mean attention on all other tokens (1)"),
    "selection_agreement": (
        "f8", "share of sequences whose most attended token is the optimal one (1)"
    ),
    "solution_norm": ("f8", "norm of the solution for the tokens reached (1)"),
    "gap": ("f8", "relative duality gap certified of that solution (1)"),
    "as_predicted": ("i1", "whether every sequence attends most to its optimal token"),
    "feasible": ("i1", "whether some matrix selects the tokens reached"),
    "locally_optimal": ("i1", "whether the tokens reached are locally optimal"),
    "ties": ("i1", "whether some sequence attends to several tokens alike"),
    "status": (
        "i1",
        "how training ended: "
        + ", ".join(f"{int(status)} {status}" for status in TrialStatus if status <= 4),
    ),
}  # fmt: skip
"""What is measured of every trial, after its last step or at every horizon."""

_CURVES = (
    "margin_ratio", "correlation", "kkt_residual", "selected_probability",
    "log_unselected_probability",
)  # fmt: skip
_OUTCOMES = ("selection_agreement", "solution_norm", "gap", "feasible", "locally_optimal")
_HORIZONS = "horizons"


def train_and_verify(**settings: Any) -> Experiment:
    """Training by any optimizer that Attractor knows, held against the direction predicted.

    Args:
        **settings: Values of ``PARAMETERS``, which may also be axes of a grid; and ``horizons``,
            steps at which everything is measured as if training had ended there, in place of
            ``steps``. They are an axis of every measure, called ``step``.

    Raises:
        InvalidInputError: If one is not known, or cannot be used.
    """
    rest = dict(settings)
    horizons = rest.pop(_HORIZONS, None)
    checked = check_settings(PARAMETERS, rest, "train_and_verify")
    along = {}
    if horizons is not None:
        if "steps" in settings:
            raise InvalidInputError(
                _HORIZONS, "it stands beside steps", "Keep horizons: training ends at the last"
            )
        checked[_HORIZONS] = _check_horizons(_HORIZONS, horizons)
        along = {"step": checked[_HORIZONS]}
    return Experiment(
        "train_and_verify",
        MEASURES,
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
    check_axes(PARAMETERS, axes)
    check_sizes(PARAMETERS, axes, settings)
    for point in combinations(
        axes, ("optimizer", "parameterization", "geometry", *HYPERPARAMETERS)
    ):
        given = filled_in(PARAMETERS, point, settings)
        optimizer = optimizer_of(given)
        if given["geometry"] == OWN and _descended(given, optimizer) is None:
            raise InvalidInputError(
                "geometry",
                f"which norm {given['optimizer']} descends on {given['parameterization']} is not "
                "known",
                "Name the norm to solve in, such as frobenius",
            )
    for point in combinations(axes, ("data", *SIZES, "parameterization", "loss")):
        _check_training(filled_in(PARAMETERS, point, settings))
    if 0 in (*axes.get("initial_scale", ()), settings.get("initial_scale", 1.0)):
        for point in combinations(axes, ("parameterization",)):
            layer = _layer(filled_in(PARAMETERS, point, settings))
            layer.check_initial({name: np.zeros((1, 1)) for name in layer.shapes(1, 1)})


def run(
    point: Mapping[str, Any],
    instances: Int[np.ndarray, "instances"],
    seeds: range,
    *,
    horizons: Sequence[int] | None = None,
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Trains every instance from every seed, and measures it; see ``MEASURES``.

    A trial that diverges has the status alone; all else of it is missing.

    Args:
        point: Values of the axes.
        instances: Numbers of the data sets.
        seeds: Seeds of initial parameters.
        horizons: Steps at which all is measured, as if training had ended there.
        **settings: Values of other parameters.
    """
    from attractor.training import train

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
            initial=given["initial_scale"],
            loss=given["loss"],
            parameterization=given["parameterization"],
            record=steps,
            weights="all",
        )
        norm = None if given["geometry"] == OWN else given["geometry"]
        found = [_measured(_ended_at(trained, step), norm) for step in steps]
    if not horizons:
        return found[0]
    return {name: np.stack([one[name] for one in found], axis=-1) for name in MEASURES}


def optimizer_of(given: Mapping[str, Any]) -> Optimizer:
    """The optimizer at a point, by its name and the hyperparameters given beside it.

    Raises:
        InvalidInputError: If there is none of that name, or it has no such hyperparameter.
    """
    from attractor.analysis.bias import named_optimizer

    own = {name: given[name] for name in HYPERPARAMETERS if given[name] is not None}
    rate = own.pop("learning_rate", None)
    spelling = given["optimizer"]
    if own and isinstance(spelling, str):
        written = ",".join(f"{name}={value}" for name, value in own.items())
        spelling = f"{spelling}{',' if ':' in spelling else ':'}{written}"
    return named_optimizer(spelling, rate)


def _layer(given: Mapping[str, Any]) -> Parameterization:
    from attractor.attention import get_parameterization

    return get_parameterization(given["parameterization"])


def _descended(given: Mapping[str, Any], optimizer: Optimizer) -> Any:
    return _layer(given).effective_geometry(optimizer.geometry)


def _check_training(given: Mapping[str, Any]) -> None:
    """Checks on one data set that it can be trained on."""
    from attractor.training.inputs import check_inputs

    tokens, head = draw_tokens(given, np.arange(1))
    check_inputs(tokens, head, given["loss"], given["parameterization"], None, 1, 0)


def _ended_at(trained: Trajectory, step: int) -> Trajectory:
    """The run as if it had ended at a step that was recorded."""
    data = trained.data.sel(step=[step])
    going = data["status"].copy(data=np.full_like(data["status"].values, TrialStatus.TRAINED))
    ended = data["steps_taken"] < step
    return dataclasses.replace(trained, data=data.assign(status=data["status"].where(ended, going)))


def _measured(trained: Trajectory, norm: str | None) -> dict[str, np.ndarray]:
    """The measures of a run at its end, ``(instances, seeds)`` each.

    Args:
        trained: The run.
        norm: The norm to solve and to measure in; None for the one that was descended.
    """
    from attractor.analysis import verify

    trials = ("instance", "seed")
    data = trained.data.isel(step=-1).transpose(*trials, ...)
    W, shape = data["W"].to_numpy(), data["status"].shape
    diverged = data["status"].to_numpy() == TrialStatus.DIVERGED
    known = np.asarray(np.isfinite(W).all((-1, -2))) & ~diverged
    found = {
        name: np.full(shape, np.nan) if dtype == "f8" else np.full(shape, -1, np.int8)
        for name, (dtype, _) in MEASURES.items()
    }
    found["status"] = data["status"].to_numpy().astype(np.int8)
    if not known.any():
        return found
    verdict = verify(trained, geometry=norm).data.isel(step=-1)
    values = {
        name: verdict[name].transpose(*trials).to_numpy()
        for name in (*_CURVES, *_OUTCOMES)
        if name in verdict
    }
    values["training_loss"] = data["loss"].to_numpy()
    geometry = get_geometry(norm or trained.geometry)
    values["norm"] = np.asarray(geometry.norm(np.where(known[..., None, None], W, 0.0)))
    if "selection_agreement" in values:
        values["as_predicted"] = values["selection_agreement"] == 1
    reached = verdict["reached"].transpose(*trials, ...).to_numpy()
    values["ties"] = np.asarray((reached < 0).any((-1, -2)))
    for name, measured in values.items():
        found[name][known] = measured[known]
    return found
