"""Runs of experiments: where training starts, and what is measured of it at its records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis import verify
from attractor.analysis.curves import attended
from attractor.analysis.losses.first_gradient import gradients_at_zero
from attractor.analysis.several_heads import as_one_head
from attractor.attention import (
    AttentionMatrix,
    Joint,
    KeyQuery,
    MultiHead,
    get_loss,
    get_parameterization,
)
from attractor.geometry import get_geometry
from attractor.maps.sweeps.experiments.parameters import (
    SIZES,
    Parameter,
    combinations,
    draw_tokens,
    filled_in,
    text,
    word,
)
from attractor.support.checks import check_number
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.randomness import check_seed
from attractor.training.inputs import check_inputs
from attractor.training.programs.trials import initial_parameters

if TYPE_CHECKING:
    from attractor.attention import Parameterization
    from attractor.tokens import Tokens
    from attractor.training import Trajectory


_PARAMETERS, _MATRIX = "parameters", "matrix"


def _parameterization_named(name: str) -> Parameterization:

    return get_parameterization(name)


START_PARAMETERS = {
    "parameterization": text("W", _parameterization_named, "what is trained"),
    "start": word(
        _PARAMETERS,
        (_PARAMETERS, _MATRIX),
        "what is random: the parameters, or W, of which keys and queries are balanced factors",
    ),
    "initial_scale": Parameter(
        1.0,
        lambda name, it: check_number(name, it, least=0.0, example=1.0),
        "factor on what is random, which is uniform on [-1/sqrt(d), 1/sqrt(d)]",
    ),
    "gauge": Parameter(
        0,
        check_seed,
        "number of the orthogonal matrix that keys and queries are turned by at the start, not 0",
    ),
}
"""What is trained, and from where."""


def layer_of(given: Mapping[str, Any]) -> Parameterization:
    """What is trained at a point.

    Raises:
        InvalidInputError: If it has no factors, but a gauge.
    """
    layer = _parameterization_named(given["parameterization"])
    if not given["gauge"]:
        return layer
    turned = KeyQuery(gauge=given["gauge"])
    if layer not in (turned, Joint(turned)):
        raise InvalidInputError(
            "gauge", f"{layer.name} has no factors to turn", "Give 0, or train KQ"
        )
    return Joint(turned) if isinstance(layer, Joint) else turned


def check_trainable(
    parameters: Mapping[str, Parameter],
    axes: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any],
) -> None:
    """Checks that what is drawn at every point can be trained, and training can leave its start.

    Raises:
        InvalidInputError: If it cannot, as from keys and queries that are zero.
    """
    for point in combinations(axes, ("data", *SIZES, "parameterization", "gauge", "loss")):
        given = filled_in(parameters, point, settings)
        layer_of(given)
        tokens, head = draw_tokens(given, np.arange(1))
        check_inputs(tokens, head, given["loss"], given["parameterization"], None, 1, 0)
    if 0 in (*axes.get("initial_scale", ()), settings.get("initial_scale", 1.0)):
        for point in combinations(axes, ("parameterization",)):
            layer = layer_of(filled_in(parameters, point, settings))
            layer.check_initial({name: np.zeros((1, 1)) for name in layer.shapes(1, 1)})


def start(
    given: Mapping[str, Any],
    tokens: Tokens,
    instances: Int[np.ndarray, "instances"],
    seeds: range,
) -> dict[str, Any]:
    """What is trained and from where, as ``train`` takes it: a scale, or arrays of every trial.

    Args:
        given: The value of every parameter.
        tokens: The data sets.
        instances: Their numbers.
        seeds: Seeds of what is random.
    """
    if given["start"] == _PARAMETERS:
        return {"parameterization": layer_of(given), "initial": given["initial_scale"]}

    layer = layer_of(given)
    shape = (len(instances), len(seeds))
    numbers = np.broadcast_to(np.asarray(instances)[:, None], shape).ravel()
    repeats = np.broadcast_to(np.array(seeds), shape).ravel()
    prepared = layer.prepare(tokens)
    sizes = (prepared.key_dimension, prepared.query_dimension)
    heads = layer.attention_heads
    drawn = AttentionMatrix() if heads is None else MultiHead("W", heads)
    W = drawn.to_arrays(initial_parameters(drawn, repeats, numbers, *sizes))["W"]
    scaled = layer.from_matrix(np.asarray(W) * given["initial_scale"])
    arrays = layer.to_arrays(layer.in_gauge(scaled))
    return {
        "parameterization": given["parameterization"],
        "initial": {name: one.reshape(*shape, *one.shape[1:]) for name, one in arrays.items()},
    }


OWN = "own"
"""The geometry that training descends."""

MEASURES = {
    "margin_ratio": (
        "f8", "normalized margin ratio: margin of W per norm, over the largest possible (1)"
    ),
    "correlation": ("f8", "cosine between W and the solution (1)"),
    "kkt_residual": ("f8", "largest violation of a condition for optimality by W's direction (1)"),
    "norm": ("f8", "norm of W in the geometry of the margin problem (1)"),
    "initial_norm": ("f8", "Frobenius norm of W at the start (1)"),
    "initial_lead": (
        "f8", "mean over sequences of the best score less the second at the start (1)"
    ),
    "training_loss": ("f8", "training loss (1)"),
    "selected_probability": ("f8", "mean attention on the tokens selected (1)"),
    "log_unselected_probability": ("f8", "logarithm of the mean attention on all other tokens (1)"),
    "selection_agreement": (
        "f8", "share of sequences whose most attended token is the optimal one (1)"
    ),
    "initial_agreement": (
        "f8", "share of sequences whose most attended token is that of the start (1)"
    ),
    "gradient_agreement": (
        "f8",
        "share of sequences whose most attended token is that of a gradient step from W = 0 (1)",
    ),
    "solution_norm": ("f8", "norm of the solution for the tokens reached (1)"),
    "gap": ("f8", "relative duality gap certified of that solution (1)"),
    "as_predicted": ("i1", "whether every sequence attends most to its optimal token"),
    "as_initial": ("i1", "whether every sequence attends most to the token of the start"),
    "feasible": ("i1", "whether some matrix selects the tokens reached"),
    "locally_optimal": ("i1", "whether the tokens reached are locally optimal"),
    "ties": ("i1", "whether some sequence attends to several tokens alike"),
    "status": (
        "i1",
        "how training ended: "
        + ", ".join(f"{int(s)} {s}" for s in TrialStatus if s <= TrialStatus.OUT_OF_STEPS),
    ),
}  # fmt: skip
"""What is measured of every trial at a record.

Agreement with the start is one over the sequences that attend to a single token there, and missing
where none does, as at ``W = 0``; likewise for the gradient step.
"""

SETTLED = {
    "settled": ("i1", "whether every sequence attends most to its token at the end, from now on")
}
"""What is measured besides at several records: from each on, whether the selection stays."""

_CURVES = (
    "margin_ratio", "correlation", "kkt_residual", "selected_probability",
    "log_unselected_probability",
)  # fmt: skip
_OUTCOMES = ("selection_agreement", "solution_norm", "gap", "feasible", "locally_optimal")
_TRIALS = ("instance", "seed")


def outcomes(
    trained: Trajectory,
    geometry: str,
    reached: Mapping[float, Bool[np.ndarray, "instance seed"]],
    lost: Sequence[TrialStatus] = (TrialStatus.DIVERGED,),
    arrangement: str = OWN,
) -> dict[str, np.ndarray]:
    """The measures of a run at several records, ``(instances, seeds, records)`` each.

    Several attention heads are measured as one matrix; what a gradient step from zero would attend
    to is missing then.

    Args:
        trained: The run, recorded at its start, with all matrices.
        geometry: The norm to solve and to measure in; ``"own"`` for the one that was descended.
        reached: The records, and which trials had not ended before them.
        lost: What ends a trial so that nothing is known of it from then on.
        arrangement: How the matrices of attention heads are one; ``"own"`` as in training.
    """
    several = trained.attention_heads is not None
    if several:
        trained = _as_one_head(trained, geometry, arrangement)
    start = trained.data["W"].isel({trained.axis: 0}).transpose(*_TRIALS, ...).to_numpy()
    first, lead = _attended(trained.tokens, start), _lead(trained.tokens, start)
    size = np.linalg.norm(start, axis=(-2, -1))
    favored = (np.full(first[:, 0].shape, -1) if several else _favored(trained))[:, None]
    parts, selections = [], []
    for record, going in reached.items():
        ended = _ended_at(trained, record, going)
        found, selection = _measured(ended, None if geometry == OWN else geometry, lost)
        known = found.pop("known")
        for name, other in (("initial", first), ("gradient", favored)):
            agreement = _agreement(trained.tokens, selection, other)
            found[f"{name}_agreement"] = np.where(known, agreement, np.nan)
        share = found["initial_agreement"]
        found["as_initial"] = np.where(np.isnan(share), -1, share == 1).astype(np.int8)
        found["initial_norm"] = np.where(known, size, np.nan)
        found["initial_lead"] = np.where(known, lead, np.nan)
        parts.append(found)
        selections.append(np.where(known[..., None, None], selection, _UNKNOWN))
    together = {name: np.stack([one[name] for one in parts], axis=-1) for name in MEASURES}
    return together | {"settled": _settled(np.stack(selections))}


def _as_one_head(trained: Trajectory, geometry: str, arrangement: str) -> Trajectory:
    """The run of the one matrix that holds those of all attention heads."""
    norm = get_geometry(trained.geometry if geometry == OWN else geometry)
    return as_one_head(trained, norm, None if arrangement == OWN else arrangement)


_UNKNOWN = -2
"""In place of a token: nothing is known."""


def _ended_at(
    trained: Trajectory, record: float, going: Bool[np.ndarray, "instance seed"]
) -> Trajectory:
    """The run as if it had ended at a record."""
    data = trained.data.sel({trained.axis: [record]})
    status = data["status"].transpose(*_TRIALS)
    status = status.copy(data=np.where(going, TrialStatus.TRAINED, status.to_numpy()))
    return dataclasses.replace(trained, data=data.assign(status=status))


def _measured(
    trained: Trajectory, norm: str | None, lost: Sequence[TrialStatus]
) -> tuple[dict[str, np.ndarray], Int[np.ndarray, "instance seed sequence query"]]:
    """The measures of a run at its end, with what is known, and the tokens reached."""
    data = trained.data.isel({trained.axis: -1}).transpose(*_TRIALS, ...)
    W, status = data["W"].to_numpy(), data["status"].to_numpy()
    known = np.asarray(np.isfinite(W).all((-1, -2))) & ~np.isin(status, lost)
    found = {
        name: np.full(status.shape, np.nan) if dtype == "f8" else np.full(status.shape, -1, np.int8)
        for name, (dtype, _) in MEASURES.items()
    }
    found |= {"status": status.astype(np.int8), "known": known}
    if not known.any():
        rows = trained.tokens.mask.shape[1:-1]
        return found, np.full((*status.shape, *rows), _UNKNOWN)
    verdict = verify(trained, geometry=norm).data.isel({trained.axis: -1})
    values = {
        name: verdict[name].transpose(*_TRIALS).to_numpy()
        for name in (*_CURVES, *_OUTCOMES)
        if name in verdict
    }
    values["training_loss"] = data["loss"].to_numpy()
    geometry = get_geometry(norm or trained.geometry)
    values["norm"] = np.asarray(geometry.norm(np.where(known[..., None, None], W, 0.0)))
    if "selection_agreement" in values:
        values["as_predicted"] = values["selection_agreement"] == 1
    selection = verdict["reached"].transpose(*_TRIALS, ...).to_numpy()
    values["ties"] = np.asarray((selection < 0).any((-1, -2)))
    for name, measured in values.items():
        found[name][known] = measured[known]
    return found, selection


def _attended(
    tokens: Tokens, W: Float[np.ndarray, "instance seed d e"]
) -> Int[np.ndarray, "instance seed sequence query"]:
    """The token that each matrix attends to most, -1 where several tie."""
    mask = attended(tokens, W[:, :, None]).mask[:, :, 0]
    return np.where(mask.sum(-1) == 1, mask.argmax(-1), -1)


def _lead(
    tokens: Tokens, W: Float[np.ndarray, "instance seed d e"]
) -> Float[np.ndarray, "instance seed"]:
    """How far the best score lies above the second, on average over the rows with a choice."""
    scores = tokens.scores(W.swapaxes(0, 1)).swapaxes(0, 1)
    best = np.sort(np.where(tokens.mask[:, None], scores, -np.inf), axis=-1)
    choices = tokens.mask.sum(-1)[:, None] > 1
    leads = np.where(choices, best[..., -1] - np.where(choices, best[..., -2], 0.0), 0.0)
    return leads.sum((-1, -2)) / choices.sum((-1, -2))


def _favored(trained: Trajectory) -> Int[np.ndarray, "instance sequence query"]:
    """The token that a gradient step from ``W = 0`` favors most, -1 where several tie."""
    assert trained.head is not None
    loss = get_loss(trained.settings["loss"])
    _, slope = gradients_at_zero(trained.tokens, trained.head, loss)
    return _attended(trained.tokens, -slope[:, None])[:, 0]


def _agreement(
    tokens: Tokens,
    selection: Int[np.ndarray, "instance seed sequence query"],
    other: Int[np.ndarray, "instance trial sequence query"],
) -> Float[np.ndarray, "instance seed"]:
    """Share of the rows with a choice, and a single token in the other, that have the same one."""
    counted = (tokens.mask.sum(-1) > 1)[:, None] & (other >= 0)
    same = (selection == other) & counted
    total = np.broadcast_to(counted.sum((-1, -2)), same.shape[:2])
    share = np.full(same.shape[:2], np.nan)
    return np.divide(same.sum((-1, -2)), total, out=share, where=total > 0)


def _settled(
    selections: Int[np.ndarray, "record instance seed sequence query"],
) -> Int[np.ndarray, "instance seed record"]:
    """Whether the selection at each record is that of all later ones; -1 where one is unknown."""
    same = (selections == selections[-1]).all((-1, -2))
    known = (selections[-1] != _UNKNOWN).all((-1, -2))
    stays = np.logical_and.accumulate(same[::-1])[::-1]
    return np.moveaxis(np.where(known, stays, -1), 0, -1).astype(np.int8)
