"""Mirror descent on random data sets, held against the solutions in several norms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from attractor.attention import LinearHead
from attractor.geometry import Lp
from attractor.margin import MarginProblem, check_local_optimality, solve
from attractor.papers.figure import Request
from attractor.papers.measurements.bregman import divergences
from attractor.papers.mirror_descent.data import (
    EXPONENTS,
    LEARNING_RATE,
    PUBLISHED_EPS,
    STEPS,
    normal_weights,
    random_data_sets,
)
from attractor.selection import Selection, optimal_tokens
from attractor.tokens import Tokens
from attractor.training import Trajectory, mirror_descent, train

ALONG = np.concatenate([[0, 1 / 500, 1 / 200, 1 / 100], np.arange(1, 61) / 60])
"""Which parts of a run are recorded."""
END = np.array([1.0])
"""The end of a run alone."""


class Protocol(NamedTuple):
    """How trials are trained.

    Attributes:
        name: What figures call it.
        kernel: Which gradients.
        eps: What is added to the norm that divides them.
    """

    name: str
    kernel: str
    eps: float


EXACT = Protocol("exact", "exact", 0.0)
PUBLISHED = Protocol("as published", "plain", PUBLISHED_EPS)
EXACT_WITH_EPS = Protocol("exact with eps", "exact", PUBLISHED_EPS)


def data_sets(request: Request) -> tuple[Tokens, LinearHead]:
    """The data sets asked for, from number 1 on."""
    first = 1 + request.seed
    tokens, head = random_data_sets(range(first, first + request.seeds))
    request.uses("random data", tokens, head)
    return tokens, head


def held_against_solutions(
    request: Request, protocol: Protocol, parts: Float[np.ndarray, "record"]
) -> xr.Dataset:
    """Trains with every exponent and measures the divergence from the solution in every norm.

    Args:
        request: How many data sets.
        protocol: How.
        parts: Which parts of a run to measure.

    Returns:
        Over (p, solution, instance, record): ``divergence``, the solutions being those of the
        tokens that the trial itself ends on, and ``divergence_from_other_runs``, those of the
        tokens that the run with the solution's exponent ends on; over (p, solution, instance)
        ``limit``, what the first would tend to; over (p, instance) ``locally_optimal``,
        ``globally_optimal``, ``loss`` and ``score_gap``; and ``step`` over (p, record).
    """
    tokens, head = data_sets(request)
    runs = {p: _run(request, protocol, tokens, head, p, parts) for p in EXPONENTS}
    ends = {p: _selection_at_end(run) for p, run in runs.items()}
    solutions = {p: _solutions(tokens, end) for p, end in ends.items()}
    best = optimal_tokens(tokens, head)
    found = []
    for p, run in runs.items():
        W, geometry, own = run.data["W"].values[:, 0], Lp(p), solutions[p]
        others = {other: solutions[other][other] for other in EXPONENTS}
        optimality = check_local_optimality(tokens, head, ends[p], geometry=geometry)
        per_solution = ("solution", "instance", "record")
        found.append(
            xr.Dataset(
                {
                    "divergence": (per_solution, _each(W, own, geometry)),
                    "divergence_from_other_runs": (per_solution, _each(W, others, geometry)),
                    "limit": (("solution", "instance"), _each(own[p], own, geometry)),
                    "locally_optimal": ("instance", optimality.holds),
                    "globally_optimal": ("instance", _same(ends[p], best)),
                    "loss": ("instance", run.data["loss"].values[:, 0, -1]),
                    "score_gap": ("instance", _least_gap(tokens, W[:, -1])),
                    "step": ("record", run.steps),
                },
                {
                    "p": p,
                    "solution": list(EXPONENTS),
                    "instance": tokens.instance_numbers,
                    "record": parts,
                },
            )
        )
    return xr.concat(found, dim="p").assign_coords(protocol=protocol.name)


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


def _run(
    request: Request,
    protocol: Protocol,
    tokens: Tokens,
    head: LinearHead,
    p: float,
    parts: Float[np.ndarray, "record"],
) -> Trajectory:
    return train(
        tokens,
        head,
        mirror_descent(LEARNING_RATE, p, eps=protocol.eps),
        steps=STEPS[p],
        initial=normal_weights(tokens, request.seed, f"p = {p:g}"),
        kernel=protocol.kernel,
        record=_steps(STEPS[p], parts),
        checkpoint=request.checkpoint(f"{protocol.name} {p:g}".replace(" ", "-")),
        progress=request.progress,
    )


def _steps(steps: int, parts: Float[np.ndarray, "record"]) -> Int[np.ndarray, "record"]:
    return np.rint(steps * parts).astype(int)


def _selection_at_end(run: Trajectory) -> Selection:
    return Selection.from_index(run.tokens, run.data["attended"].values[:, 0, -1])


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


def _same(one: Selection, other: Selection) -> np.ndarray:
    return (one.mask == other.mask).all((-1, -2, -3))


def _least_gap(
    tokens: Tokens, W: Float[np.ndarray, "instance d e"]
) -> Float[np.ndarray, "instance"]:
    """The smallest lead of an attended token's score over the next one."""
    scores = np.sort(tokens.scores(W), axis=-1)
    return (scores[..., -1] - scores[..., -2]).min((-1, -2))
