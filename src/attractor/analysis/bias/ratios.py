"""Margin ratios of many runs in many norms, each against the selection it reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.measures import asked_margins, project_on_equalities, smallest_margin
from attractor.analysis.reference import distinct_problems
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, Solution, solve
from attractor.selection import attended_tokens
from attractor.tokens import Tokens


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
    if not asked_margins(problem).any():
        return np.full((len(norms), len(W)), np.nan)
    projected = project_on_equalities(W, problem)
    smallest = smallest_margin(problem.margins(projected), problem)
    sizes = np.stack([geometry.norm(projected) for geometry in norms])
    finite = np.isfinite(W).all((-1, -2))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = smallest / sizes * solutions.values[:, number, None]
    return np.where(finite & (sizes > 0), ratios, np.nan)
