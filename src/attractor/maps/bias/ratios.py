"""Margin ratios of runs in every norm, and in the norms beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.measures import project_on_equalities, required_margins, smallest_margin
from attractor.analysis.predictions.reference import distinct_problems
from attractor.geometry import Frobenius, Geometry, Lp, Schatten
from attractor.maps.bias.answer import ENOUGH
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.selection import attended_tokens
from attractor.tokens import Tokens

NEIGHBORS = 4
"""The most neighbors that a norm has: the Frobenius norm is of both families."""
_APART = 0.02
"""How far 1 / p of a neighbor is from that of a norm."""


class Solutions(NamedTuple):
    """Margin problems, one for each data set and selection, solved in every norm.

    Attributes:
        problem: The problems, with an axis of their own.
        values: Smallest norms; NaN where a problem has no solution.
        gaps: Their certified relative gaps.
    """

    problem: MarginProblem
    values: Float[np.ndarray, "norm problem"]
    gaps: Float[np.ndarray, "norm problem"]


def reached_selections(
    tokens: Tokens, W: Float[np.ndarray, "method instance d e"]
) -> Bool[np.ndarray, "method instance sequence query token"]:
    """The tokens attended to at the end of every run."""
    return np.stack([attended_tokens(tokens, one).mask for one in np.nan_to_num(W)])


def solve_reached(
    tokens: Tokens,
    reached: Bool[np.ndarray, "method instance sequence query token"],
    norms: Sequence[Geometry],
    *,
    progress: bool = False,
) -> tuple[Solutions, Int[np.ndarray, "method instance"]]:
    """Solves once for every distinct pair of data set and selection, in every norm.

    Returns:
        The solutions, and which of them belongs to which run.
    """
    instances = np.broadcast_to(np.arange(reached.shape[1]), reached.shape[:2])
    problem, _, number = distinct_problems(tokens, instances, reached)
    values, gaps = [], []
    for geometry in norms:
        solution = solve(problem, geometry, progress=progress)
        assert isinstance(solution, Solution)
        solved = np.isfinite(solution.W).all((-1, -2))
        values.append(np.where(solved, solution.value, np.nan))
        gaps.append(np.where(solved, solution.gap, np.nan))
    return Solutions(problem, np.array(values), np.array(gaps)), number


def nearby_ratios(
    tokens: Tokens,
    reached: Bool[np.ndarray, "method instance sequence query token"],
    W: Float[np.ndarray, "method instance record d e"],
    norms: Sequence[Geometry],
    ratios: Float[np.ndarray, "method norm instance"],
) -> Float[np.ndarray, "method norm nearby instance record"]:
    """Margin ratios in the neighbors of each norm, of runs that may be at its solution; else NaN.

    They are solved for only where the median ratio of a method in the norm is high.
    """
    found = np.full((*ratios.shape[:2], NEIGHBORS, *W.shape[1:3]), np.nan)
    high = np.median(np.nan_to_num(ratios, nan=1.0), axis=-1) >= ENOUGH
    for place, norm in enumerate(norms):
        beside, methods = neighbors(norm), np.flatnonzero(high[:, place])
        if not beside or not len(methods):
            continue
        solutions, number = solve_reached(tokens, reached[methods], beside)
        for method, numbers in zip(methods, number, strict=True):
            for instance, one in enumerate(numbers):
                found[method, place, : len(beside), instance] = margin_ratios(
                    W[method, instance], solutions, int(one), beside
                )
    return found


def nearby_names(norm: Geometry) -> list[str]:
    """Names of the neighbors of a norm, filled up with empty ones."""
    names = [one.name for one in neighbors(norm)]
    return names + [""] * (NEIGHBORS - len(names))


def margin_ratios(
    W: Float[np.ndarray, "record d e"],
    solutions: Solutions,
    number: int,
    norms: Sequence[Geometry],
) -> Float[np.ndarray, "norm record"]:
    """``(min_j (a_j^T W b_j) / c_j) / ||W|| * ||W*||`` of the matrices of one run.

    NaN for matrices that are zero or not finite, and where nothing has to be separated.
    """
    problem = solutions.problem[number]
    if not required_margins(problem).any():
        return np.full((len(norms), len(W)), np.nan)
    projected = project_on_equalities(W, problem)
    smallest = smallest_margin(problem.margins(projected), problem)
    sizes = np.stack([geometry.norm(projected) for geometry in norms])
    finite = np.isfinite(W).all((-1, -2))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = smallest / sizes * solutions.values[:, number, None]
    return np.where(finite & (sizes > 0), ratios, np.nan)


def neighbors(geometry: Geometry) -> list[Geometry]:
    """The norms with an exponent somewhat smaller and somewhat larger; none outside families.

    Ratios in them tell the norm of an optimizer from those of other optimizers, whose norms need
    not be among the ones compared: in its own norm the ratio is highest.
    """
    if isinstance(geometry, Frobenius):
        return [*neighbors(Lp(2)), *neighbors(Schatten(2))]
    if not isinstance(geometry, (Lp, Schatten)):
        return []
    family = Lp if isinstance(geometry, Lp) else Schatten
    inverses = (1 / geometry.p + _APART, 1 / geometry.p - _APART)
    # Three digits, so that names are short.
    return [family(float(f"{1 / inverse:.3g}")) for inverse in inverses if 0 < inverse < 1]
