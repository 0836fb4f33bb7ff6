"""The envelope theorem for margin problems: derivatives of the smallest norm, from a solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.differentiability import multipliers_are_unique, possible_difference
from attractor.margin.problem import MarginProblem
from attractor.margin.sensitivity import Sensitivity

if TYPE_CHECKING:
    from attractor.margin.solution import Solution

_COARSEST = 1e-6
"""Gap above which it cannot be told which solutions there are."""
_SAME = 1e-3
"""Change of derivatives, relative to them and to a change of W, that is rounding: of order one,
beside an accuracy of the face of 3e-5, where it is not."""


@dataclass(frozen=True)
class _Derivatives:
    """Derivatives in the vectors of constraints and, with tokens, in keys and queries."""

    left: Float[np.ndarray, "instances m d"]
    right: Float[np.ndarray, "instances m e"]
    keys: Float[np.ndarray, "instances sequence token d"] | None
    queries: Float[np.ndarray, "instances sequence query e"] | None

    @property
    def of_data(self) -> tuple[np.ndarray, np.ndarray]:
        """Those in keys and queries, or in the vectors where there are no tokens."""
        if self.keys is None or self.queries is None:
            return self.left, self.right
        return self.keys, self.queries


def sensitivity_of(solution: Solution) -> Sensitivity:
    """Derivatives of the smallest norm in the data of a solved margin problem.

    Args:
        solution: The solution, of one problem or of several.
    """
    problem = solution.problem.batched()
    W = solution.W.reshape(len(problem), *problem.shape)
    solved = np.asarray(np.isfinite(W).all((-1, -2)))
    weights = np.where(problem.present, solution.multipliers.reshape(problem.bounds.shape), 0.0)
    weights = weights / np.where(solved, solution.certificate.dual_norm, 1.0)[:, None].clip(1e-300)
    weights = np.where(solved[:, None], weights, np.nan)
    found = _derivatives(problem, W, weights)
    same = _same_for_all_solutions(solution, problem, W, weights, found)
    unique = _unique_multipliers(solution, problem, W, weights)
    one = np.s_[0] if solution.problem.instances is None else np.s_[:]
    return Sensitivity(
        solution,
        found.left[one],
        found.right[one],
        weights[one],
        None if found.keys is None else found.keys[one],
        None if found.queries is None else found.queries[one],
        np.asarray(same[one]),
        np.asarray(unique[one]),
    )


def _unique_multipliers(
    solution: Solution, problem: MarginProblem, W: np.ndarray, weights: np.ndarray
) -> Bool[np.ndarray, "instances"]:
    """Whether the multipliers of each instance are known to be unique."""
    unique = np.zeros(len(problem), dtype=bool)
    for i in np.flatnonzero(np.isfinite(W).all((-1, -2))):
        present, active = problem.present[i], solution.certificate.support[i]
        unique[i] = multipliers_are_unique(
            problem[i], W[i], weights[i, present], active[present], solution.geometry
        )
    return unique


def _same_for_all_solutions(
    solution: Solution,
    problem: MarginProblem,
    W: np.ndarray,
    weights: np.ndarray,
    derivatives: _Derivatives,
) -> Bool[np.ndarray, "instances"]:
    """Whether the derivatives, which are linear in W, vanish at any difference of solutions."""
    gap, geometry = solution.certificate.gap, solution.geometry
    told = np.asarray(np.isfinite(W).all((-1, -2)) & (geometry.unique | (gap <= _COARSEST)))
    difference = np.zeros_like(W)
    for i in np.flatnonzero(told & (not geometry.unique)):
        x = weights[i, problem.present[i]]
        difference[i] = possible_difference(problem[i], W[i], x, float(gap[i]), geometry)
    changes = _derivatives(problem, difference, weights)
    same = told.copy()
    for change, whole in zip(changes.of_data, derivatives.of_data, strict=True):
        axes = tuple(range(1, whole.ndim))
        size = np.linalg.norm(W, axis=(-1, -2)) * np.abs(change).max(axes, initial=0.0)
        same &= size <= _SAME * np.abs(whole).max(axes, initial=0.0)
    return same


def _derivatives(problem: MarginProblem, W: np.ndarray, weights: np.ndarray) -> _Derivatives:
    """Those of the Lagrangian, by the chain rule where ``a_j`` and ``b_j`` are made of tokens."""
    left = -weights[..., None] * (problem.right @ np.swapaxes(W, -1, -2))
    right = -weights[..., None] * (problem.left @ W)
    if problem.selection is None or problem.sequence is None:
        return _Derivatives(left, right, None, None)
    keys, queries = _in_tokens(problem, left, right)
    unsolved = np.isnan(weights).any(-1)
    keys[unsolved], queries[unsolved] = np.nan, np.nan
    return _Derivatives(left, right, keys, queries)


def _in_tokens(
    problem: MarginProblem,
    left: Float[np.ndarray, "instances m d"],
    right: Float[np.ndarray, "instances m e"],
) -> tuple[
    Float[np.ndarray, "instances sequence token d"],
    Float[np.ndarray, "instances sequence query e"],
]:
    """Derivatives in keys and queries from those in the vectors of the constraints."""
    selection = problem.selection
    assert selection is not None
    assert problem.sequence is not None and problem.query is not None and problem.token is not None
    instances, n, per_sequence, length = selection.mask.shape
    instance, slot = np.nonzero(problem.present)
    sequence, query, token = (
        numbers[instance, slot] for numbers in (problem.sequence, problem.query, problem.token)
    )
    chosen = selection.mask.argmax(-1)[instance, sequence, query]
    keys = np.zeros((instances, n, length, left.shape[-1]))
    np.add.at(keys, (instance, sequence, chosen), left[instance, slot])
    np.add.at(keys, (instance, sequence, token), -left[instance, slot])
    queries = np.zeros((instances, n, per_sequence, right.shape[-1]))
    np.add.at(queries, (instance, sequence, query), right[instance, slot])
    return keys, queries
