"""Mirror descent on random data sets, compared with the solutions in several norms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.attention import LinearHead
from attractor.geometry import Lp
from attractor.margin import MarginProblem, check_local_optimality, solve
from attractor.margin.selection import Selection, optimal_tokens
from attractor.papers.figure import Request
from attractor.papers.measurements.mirror_steps import divergences
from attractor.papers.mirror_descent.data import EXPONENTS, STEPS, normal_weights, random_data_sets
from attractor.papers.mirror_descent.figures._protocols import Protocol, trained
from attractor.support.threads import in_threads
from attractor.tokens import Tokens
from attractor.training import Trajectory

ALONG = np.concatenate([[0, 1 / 500, 1 / 200, 1 / 100], np.arange(1, 61) / 60])
"""Recorded parts of a run."""
_measured: dict[tuple[Any, ...], xr.Dataset] = {}
"""What was measured for one figure of a folder and is shown by another, too."""


def data_sets(request: Request) -> tuple[Tokens, LinearHead]:
    """The requested data sets, from number 1 on."""
    first = 1 + request.seed
    tokens, head = random_data_sets(range(first, first + request.seeds))
    request.uses("random data", tokens, head)
    return tokens, head


def compared_with_solutions(request: Request, protocol: Protocol) -> xr.Dataset:
    """Trains with every exponent and measures the divergence from the solution in every norm.

    Figures that are drawn into one folder share what is measured.

    Args:
        request: The request of a figure, with the number of data sets.
        protocol: The protocol of training.

    Returns:
        Over (p, solution, instance, record): ``divergence``, the solutions being those of the
        tokens that the trial itself ends on, and ``divergence_from_other_runs``, those of the
        tokens that the run with the solution's exponent ends on; over (p, solution, instance)
        ``limit``, what the first would tend to; over (p, instance) ``locally_optimal``,
        ``globally_optimal``, ``loss`` and ``score_gap``; and ``step`` over (p, record).
    """
    tokens, head = data_sets(request)
    if request.shared is None:
        return _compared(request, protocol, tokens, head)
    key = (request.shared, request.seed, request.seeds, protocol)
    if key not in _measured:
        _measured[key] = _compared(request, protocol, tokens, head)
    return _measured[key]


def _compared(request: Request, protocol: Protocol, tokens: Tokens, head: LinearHead) -> xr.Dataset:
    """Trains with every exponent and measures."""
    best = optimal_tokens(tokens, head)

    def with_exponent(p: float) -> _MeasuredRun:
        run = trained(
            request,
            protocol,
            tokens,
            head,
            p,
            initial=normal_weights(tokens, request.seed, f"p = {p:g}"),
            record=np.rint(STEPS[p] * ALONG).astype(int),
            progress=False,
        )
        return _measured_run(run, p, tokens, head, best)

    found = {}
    with request.bar(f"training, {protocol.name}", len(EXPONENTS)) as bar:
        # Side by side, as each compiles a program of its own; the longest first.
        order = sorted(EXPONENTS, key=STEPS.__getitem__, reverse=True)
        for p, one in in_threads(with_exponent, order):
            found[p] = one
            bar(1)
    others = {p: found[p].solutions[p] for p in EXPONENTS}
    per_record = ("solution", "instance", "record")
    compared = [
        run.data.assign(divergence_from_other_runs=(per_record, _changed(run, others, Lp(p))))
        for p, run in sorted(found.items())
    ]
    return xr.concat(compared, dim="p").assign_coords(protocol=protocol.name)


class _MeasuredRun(NamedTuple):
    """A run: its matrices, the solutions of the tokens it ends on, and what was measured of it."""

    W: Float[np.ndarray, "instance record d e"]
    solutions: dict[float, Float[np.ndarray, "instance d e"]]
    data: xr.Dataset


def _measured_run(
    run: Trajectory, p: float, tokens: Tokens, head: LinearHead, best: Selection
) -> _MeasuredRun:
    """Measures a run against the solutions of the tokens that it ends on itself."""
    W, geometry = run.data["W"].values[:, 0], Lp(p)
    end = Selection.from_index(tokens, run.data["attended"].values[:, 0, -1])
    own = _solutions(tokens, end)
    optimality = check_local_optimality(tokens, head, end, geometry=geometry)
    data = xr.Dataset(
        {
            "divergence": (("solution", "instance", "record"), _each(W, own, geometry)),
            "limit": (("solution", "instance"), _each(own[p], own, geometry)),
            "locally_optimal": ("instance", optimality.holds),
            "globally_optimal": ("instance", (end.mask == best.mask).all((-1, -2, -3))),
            "loss": ("instance", run.data["loss"].values[:, 0, -1]),
            "score_gap": ("instance", _least_gap(tokens, W[:, -1])),
            "step": ("record", run.steps),
        },
        {
            "p": p,
            "solution": list(EXPONENTS),
            "instance": tokens.instance_numbers,
            "record": ALONG,
        },
    )
    return _MeasuredRun(W, own, data)


def limits_of_optimal_tokens(request: Request) -> xr.DataArray:
    """Divergences between the solutions of the optimal tokens, over (p, solution, instance)."""
    tokens, head = data_sets(request)
    solutions = _solutions(tokens, optimal_tokens(tokens, head))
    values = [_each(solutions[p], solutions, Lp(p)) for p in EXPONENTS]
    return xr.DataArray(
        np.stack(values),
        {"p": list(EXPONENTS), "solution": list(EXPONENTS), "instance": tokens.instance_numbers},
        ("p", "solution", "instance"),
    )


def _solutions(
    tokens: Tokens, selection: Selection
) -> dict[float, Float[np.ndarray, "instance d e"]]:
    problem = MarginProblem.from_selection(tokens, selection)
    return {p: solve(problem, Lp(p)).W for p in EXPONENTS}


def _each(
    W: Float[np.ndarray, "instance *records d e"],
    solutions: dict[float, Float[np.ndarray, "instance d e"]],
    geometry: Lp,
) -> Float[np.ndarray, "solution instance *records"]:
    return np.stack([divergences(W, solutions[p], geometry) for p in EXPONENTS])


def _changed(
    measured: _MeasuredRun, others: dict[float, Float[np.ndarray, "instance d e"]], geometry: Lp
) -> Float[np.ndarray, "solution instance record"]:
    """The divergences from the solutions of other runs, found anew where these differ."""
    found = measured.data["divergence"].values.copy()
    for place, p in enumerate(EXPONENTS):
        differ = (others[p] != measured.solutions[p]).any((-1, -2))
        if differ.any():
            found[place, differ] = divergences(measured.W[differ], others[p][differ], geometry)
    return found


def _least_gap(
    tokens: Tokens, W: Float[np.ndarray, "instance d e"]
) -> Float[np.ndarray, "instance"]:
    """The smallest lead of an attended token's score over the next one."""
    scores = np.sort(tokens.scores(W), axis=-1)
    return (scores[..., -1] - scores[..., -2]).min((-1, -2))
