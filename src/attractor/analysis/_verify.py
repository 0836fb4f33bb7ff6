"""``verify``: a training run compared with the direction it was predicted to take."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.analysis.curves import attended, curves, head_curves
from attractor.analysis.losses.finite_minimum import finite_minima, minima_reason, where_minima_are
from attractor.analysis.predictions.comparison import check_some_finite, comparison
from attractor.analysis.predictions.prediction import RELAXED, counted_reasons, head_lags
from attractor.analysis.predictions.reference import Reference, solve_for, use_given
from attractor.analysis.predictions.trained import (
    attention_heads,
    favors_token_scores,
    head_was_trained,
    what_was_trained,
    with_instances,
)
from attractor.analysis.several_heads import as_one_head, by_head, with_heads
from attractor.analysis.verdict import Verdict
from attractor.geometry import Geometry, get_geometry
from attractor.margin import Solution
from attractor.margin.problem import selection_of_heads
from attractor.margin.selection import Selection, optimal_tokens, token_scores
from attractor.support.checks import check_kind
from attractor.support.errors import InvalidInputError, TiedTokensWarning
from attractor.tokens import Tokens
from attractor.training import Trajectory


def verify(
    trajectory: Trajectory,
    solution: Solution | None = None,
    *,
    selection: str | Selection = "reached at end",
    geometry: Geometry | str | None = None,
    arrangement: str | None = None,
) -> Verdict:
    """Compares every trial of a training run with the solution of a margin problem.

    Without a solution the problem is the one that theory predicts for what was trained: see
    ``predicted_problem``. ``Verdict.why`` says which was taken and why. A linear head that was
    trained is compared with the solution of its label problem for the same tokens.

    Several attention heads are compared as one matrix, whose norm is that of all of them, with one
    margin problem (``MarginProblem.from_heads``), and each by itself in the same norm; for other
    norms of one head there is ``verify(run.attention_head(0), geometry=...)``.

    Args:
        trajectory: The result of ``train`` or ``regularization_path``.
        solution: The direction predicted, one for all or one for each instance. Without it the
            problem predicted is solved for ``selection``, in the norm the optimizer descends in.
            The rows of its problem are checked against the tokens of the run: a problem made by
            hand needs a ``selection``, and ``sequence``, ``query`` and ``token`` of every row.
        selection: Which tokens to solve for without a solution: those each trial attends to
            ``"reached at end"``, or at the recorded step itself (``"reached at step"``), or a
            selection of the user's, one for all or one for each instance.
        geometry: The norm to solve in without a solution; default: the one that the optimizer
            descends in. A trained head is then compared in it, too.
        arrangement: How the matrices of several attention heads are one: ``"stacked"``,
            ``"side by side"`` or ``"block diagonal"``; default: as the norm that was descended is
            one of all of them.

    Returns:
        The verdict: margin ratio, correlation, and how the selection reached compares with the
        one predicted.

    Raises:
        InvalidInputError: If the solution or the selection does not fit the run, the solution is
            one of other data, selection or geometry is given beside it, no norm is known and
            none is given, or the matrices of no trial are finite at the end.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=1000)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([0.96, 0.95])
    """
    if isinstance(trajectory, Solution) and isinstance(solution, Trajectory):
        raise InvalidInputError(
            "trajectory", "it is a solution, and the solution is a trajectory", "Swap the two"
        )
    check_kind("trajectory", trajectory, Trajectory, "Give what train or a path returned")
    if solution is not None:
        check_kind("solution", solution, Solution, "Give what solve returned, or None")
        if not (isinstance(selection, str) and selection == "reached at end"):
            raise InvalidInputError(
                "selection", "a solution was given as well", "Give the one or the other"
            )
        if geometry is not None:
            raise InvalidInputError(
                "geometry", "a solution was given as well, in its own", "Give the one or the other"
            )
    norm = None if solution is not None else _norm_to_solve_in(trajectory, geometry)
    several = trajectory.attention_heads is not None
    if arrangement is not None and not several:
        raise InvalidInputError(
            "arrangement", "the run has no axis of attention heads", "Leave it out"
        )
    if trajectory.hyperparameters:
        return _of_variants(
            trajectory, solution, selection=selection, geometry=geometry, arrangement=arrangement
        )
    if several:
        return _of_heads(trajectory, solution, selection, norm, arrangement)
    tokens, axis = with_instances(trajectory.tokens), trajectory.axis
    kept = trajectory.data["W"]
    if axis not in kept.dims:
        kept = kept.expand_dims({axis: trajectory.steps[-1:]})
    W = (
        kept.transpose("instance", "seed", axis, "row", "column")
        .to_numpy()
        .astype(np.float64, order="C")
    )
    check_some_finite(W[:, :, -1], trajectory)
    trained = what_was_trained(
        tokens,
        trajectory.head,
        trajectory.settings.get("loss", ""),
        head_trained=head_was_trained(trajectory),
        attention_heads=attention_heads(trajectory),
    )
    reached = attended(tokens, W)
    if solution is not None:
        reference = use_given(tokens, solution, trained, W.shape[:3])
    else:
        assert norm is not None
        reference = solve_for(tokens, reached, selection, trained, norm)
    head = head_measures(trajectory, W, reference)
    measured = curves(tokens, W, reference, trajectory) | head.curves
    minima = finite_minima(tokens, W[:, :, -1], trajectory)
    for name in _OF_DIRECTIONS:
        measured[name][minima.found] = np.nan
    outcome = _outcome(tokens, trajectory, reference, reached)
    if minima.found.any():
        norm = reference.solution.geometry
        outcome |= where_minima_are(minima, W[:, :, -1], tokens, trajectory.head, norm)
    trials = ("instance", "seed")
    along = (*trials, axis)
    data = xr.Dataset(
        {name: (along, values) for name, values in measured.items()}
        | outcome
        | {"comparison": (trials, comparison(W[:, :, -1], reference, measured, minima))}
        | head.outcome,
        coords={name: (kept if name == axis else trajectory.data)[name] for name in along},
    )
    for name in ("loss", "norm", "log_time"):
        if name in trajectory.data:
            data[name] = trajectory.data[name].sel({axis: data[axis]})
    data["status"] = trajectory.data["status"]
    last = reference.number[:, :, -1].ravel()
    why = counted_reasons(reference.why[number] for number in last)
    if geometry is not None and reference.solution.geometry.name != trajectory.geometry:
        why += _CHOSEN.format(norm=reference.solution.geometry.name, own=trajectory.geometry)
    if minima.found.any():
        why += minima_reason(data)
    return Verdict(
        data,
        reference.solution,
        trajectory,
        reference.description,
        why=why,
        label=None if reference.label is None else reference.label.solution,
    )


_OF_DIRECTIONS = (
    "margin_ratio", "correlation", "directional_bregman_divergence", "kkt_residual",
)  # fmt: skip
"""Measures of the direction of a matrix, which one at a finite minimum has no limit of."""
_CHOSEN = " The norm, {norm}, was chosen; the one that training descended is {own}."


def _of_heads(
    trajectory: Trajectory,
    solution: Solution | None,
    selection: str | Selection,
    geometry: Geometry | None,
    arrangement: str | None,
) -> Verdict:
    """The verdict of several attention heads: as one matrix, and of each by itself."""
    together = as_one_head(trajectory, geometry, arrangement, solution)
    if isinstance(selection, Selection):
        selection = selection_of_heads(with_instances(trajectory.tokens), selection)
    found = verify(together, solution, selection=selection, geometry=geometry)
    each = by_head(trajectory, found, selection)
    norm = found.solution.geometry
    alone = [
        verify(trajectory.attention_head(head), selection=own, geometry=norm)
        for head, own in enumerate(each)
    ]
    return with_heads(found, trajectory, together, alone)


def _of_variants(trajectory: Trajectory, solution: Solution | None, **options: Any) -> Verdict:
    """The verdict of a run with several values of hyperparameters: as if of more seeds."""
    names, data = trajectory.hyperparameters, trajectory.data
    labels = {name: data[name].to_numpy() for name in (*names, "seed")}
    sizes = [len(values) for values in labels.values()]
    found = verify(
        dataclasses.replace(trajectory, data=_as_seeds(data, tuple(labels))),
        solution,
        **options,
    )
    variables = {}
    for name, array in found.data.data_vars.items():
        dims, values = array.dims, array.to_numpy()
        if "seed" in dims:
            place = dims.index("seed")
            shape = (*values.shape[:place], *sizes, *values.shape[place + 1 :])
            dims = (*dims[:place], *labels, *dims[place + 1 :])
            first = [place + number for number in range(len(names))]
            values = np.moveaxis(values.reshape(shape), first, range(len(names)))
            dims = (*names, *(dim for dim in dims if dim not in names))
        variables[name] = (dims, values, array.attrs)
    kept = {name: found.data[name] for name in ("instance", trajectory.axis)}
    again = xr.Dataset(variables, labels | kept, found.data.attrs)
    return dataclasses.replace(found, data=again, trajectory=trajectory)


def _as_seeds(data: xr.Dataset, names: tuple[str, ...]) -> xr.Dataset:
    """Data with several axes of trials as one axis of seeds, the last of them changing fastest."""
    count = math.prod(data.sizes[name] for name in names)
    variables = {}
    for name, array in data.data_vars.items():
        if names[0] not in array.dims:
            variables[name] = array
            continue
        rest = [dim for dim in array.dims if dim not in ("instance", *names)]
        values = array.transpose("instance", *names, *rest).to_numpy()
        shape = (len(values), count, *values.shape[1 + len(names) :])
        variables[name] = (("instance", "seed", *rest), values.reshape(shape))
    coordinates = {name: data[name] for name in data.coords if name not in names}
    return xr.Dataset(variables, coordinates | {"seed": np.arange(count)}, data.attrs)


def _norm_to_solve_in(trajectory: Trajectory, geometry: Geometry | str | None) -> Geometry:
    """The norm chosen, or the one that training descended."""
    if geometry is not None:
        return get_geometry(geometry)
    if trajectory.geometry == "not known":
        raise InvalidInputError(
            "geometry",
            "which norm this optimizer descends is not known, so there is none to solve in",
            'Give the norm of your choice, such as geometry="frobenius", or a solution',
        )
    return get_geometry(trajectory.geometry)


def _outcome(
    tokens: Tokens, trajectory: Trajectory, reference: Reference, reached: Selection
) -> dict[str, tuple]:
    """The outcome of each trial: feasibility, and the selection predicted and reached."""
    trials, rows = ("instance", "seed"), ("instance", "seed", "sequence", "query")
    last = reference.number[:, :, -1]
    end = Selection(reached.mask[:, :, -1], reached.tied[:, :, -1])
    outcome = {
        "feasible": (trials, reference.feasible[last]),
        "gap": (trials, reference.gap[last]),
        "solution_norm": (trials, reference.value[last]),
        "reached": (rows, _index(end)),
        "problem": (trials, np.array(reference.kind)[last]),
    }
    if trajectory.head is not None and favors_token_scores(trajectory):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TiedTokensWarning)
            predicted = optimal_tokens(tokens, trajectory.head)
        scores = token_scores(tokens, trajectory.head)
        optimal = reference.locally_optimal(scores)
        outcome["locally_optimal"] = (trials, optimal[last])
    elif reference.predicted is not None:
        predicted = reference.predicted
    else:
        return outcome
    choices = tokens.mask.sum(-1) > 1
    kept = (end.mask & predicted.mask[:, None]).any(-1) & (end.mask.sum(-1) == 1)
    agreement = (kept & choices[:, None]).sum((-1, -2)) / choices.sum((-1, -2))[:, None]
    outcome["predicted"] = (("instance", "sequence", "query"), _index(predicted))
    outcome["selection_agreement"] = (trials, agreement)
    return outcome


def _index(selection: Selection) -> np.ndarray:
    """Positions with the axis of queries kept, -1 where several tokens are chosen."""
    return np.where(selection.mask.sum(-1) == 1, selection.mask.argmax(-1), -1)


class HeadMeasures(NamedTuple):
    """Measures of the head of every trial; empty where no linear head was trained.

    Attributes:
        curves: Over (instance, seed, record): ``label_margin_ratio`` and ``label_correlation``.
        outcome: Dimensions and values of the outcome of each trial.
    """

    curves: dict[str, np.ndarray]
    outcome: dict[str, tuple[tuple[str, ...], Any]]


def head_measures(
    trajectory: Trajectory,
    W: Float[np.ndarray, "instance seed step d e"],
    reference: Reference,
) -> HeadMeasures:
    """Measures heads by the label problem of the tokens that their trial is compared with.

    The outcome holds, for each trial: ``label_separable``, ``label_gap``; ``head_ratio``, the norm
    of the head in units of that of ``W``; ``critical_ratio``, what it must at least be for a
    relaxed problem to be the limit; ``head_lags``, whether it is less. For each row:
    ``label_support``.
    """
    label = reference.label
    if label is None:
        return HeadMeasures({}, {})
    axis = trajectory.axis
    kept = trajectory.data["head_weight"]
    if axis not in kept.dims:
        kept = kept.expand_dims({axis: trajectory.steps[-1:]}, axis=2)
    heads = kept.to_numpy().astype(np.float64, order="C")[..., None]
    last = reference.number[:, :, -1]
    trials, rows = ("instance", "seed"), ("instance", "seed", "sequence", "query")
    sizes = label.solution.geometry.norm(heads[:, :, -1])
    norms = reference.solution.geometry.norm(W[:, :, -1])
    ratio = np.divide(sizes, norms, out=np.full_like(sizes, np.nan), where=norms > 0)
    critical = reference.critical_ratio[last]
    lags = head_lags(ratio, critical) & (np.array(reference.kind)[last] == RELAXED)
    return HeadMeasures(
        head_curves(heads, reference),
        {
            "label_separable": (trials, label.separable[last]),
            "label_gap": (trials, np.asarray(label.solution.gap)[last]),
            "label_support": (rows, label.at_margin[last]),
            "head_ratio": (trials, ratio),
            "critical_ratio": (trials, critical),
            "head_lags": (trials, lags),
        },
    )
