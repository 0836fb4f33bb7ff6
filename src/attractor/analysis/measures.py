"""How far matrices are from the solution of a margin problem: the numbers a verdict is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.bregman import directional_bregman_divergence
from attractor.checks import check_kinds
from attractor.geometry._lengths import in_ordinary_units, ordinary_factor
from attractor.margin import MarginProblem, Solution
from attractor.precision import as_real


@dataclass(frozen=True)
class DirectionMeasures:
    """Measures of a batch of matrices against one solution.

    Attributes:
        margin_ratio: ``(min_j a_j^T W b_j / c_j) / ||W|| * ||W*||`` over inequalities with
            ``c_j > 0``; at most 1, and 1 where the direction is a solution. Defined in every
            norm, also where the solution is not unique.
        correlation: ``<W, W*> / (||W||_F ||W*||_F)``; NaN where the solution is not known to be
            unique, as then one of many would decide it.
        directional_bregman_divergence: ``D = 1 - <grad psi(W / ||W||), W* / ||W*||>`` with
            ``psi = ||.||^p / p``; accurate down to 1e-30, where ``1 - correlation`` is not. NaN
            where the geometry has no mirror map.
        kkt_residual: With W scaled to the norm of the solution, the largest of the misalignment
            ``1 - <W, M> / (||W|| ||M||_dual)``, ``M = sum_j lambda_j a_j b_j^T``; the infeasibility
            ``max_j (c_j - a_j^T W b_j)_+ / c_j``; and the complementarity
            ``sum_j lambda_j |a_j^T W b_j - c_j| / sum_j lambda_j c_j``.
        violated: Number of violated inequalities with ``c_j <= 0``.
        removed_norm: Frobenius norm of the part of W that acts on equality constraints. The
            other measures are of what is left when it is removed.
    """

    margin_ratio: Float[np.ndarray, "batch"]
    correlation: Float[np.ndarray, "batch"]
    directional_bregman_divergence: Float[np.ndarray, "batch"]
    kkt_residual: Float[np.ndarray, "batch"]
    violated: Int[np.ndarray, "batch"]
    removed_norm: Float[np.ndarray, "batch"]


def measure_direction(W: Float[np.ndarray, "batch d e"], solution: Solution) -> DirectionMeasures:
    """Measures matrices against one solution.

    Args:
        W: Effective attention matrices; those that are zero or not finite measure NaN.
        solution: The solution of a single problem; infeasible ones measure NaN.
    """
    check_kinds(solution=(solution, Solution))
    problem, geometry = solution.problem, solution.geometry
    W = as_real("W", W, ("batch", *problem.shape))
    undefined = np.full(len(W), np.nan)
    if not np.isfinite(solution.W).all() or not (problem.bounds > 0).any():
        none = np.zeros(len(W), dtype=int)
        return DirectionMeasures(undefined, undefined, undefined, undefined, none, undefined)
    # All but two of the measures are of the direction alone, and squares of large entries overflow.
    factor = ordinary_factor(np.abs(W).max((-1, -2), initial=0.0))
    W = in_ordinary_units(W)
    target = solution.W * ordinary_factor(np.abs(solution.W).max())
    projected = project_on_equalities(W, problem)
    norm = np.where(np.isfinite(W).all((-1, -2)), geometry.norm(projected), np.nan)
    norm = np.where(norm > 0, norm, np.nan)
    margins = problem.margins(projected)
    loose = ~problem.equality & (problem.bounds <= 0)
    smallest = smallest_margin(margins, problem)
    correlation = undefined
    if solution.uniqueness == "unique":
        lengths = np.linalg.norm(projected, axis=(-1, -2)) * np.linalg.norm(target)
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.where(norm > 0, (projected * target).sum((-1, -2)) / lengths, np.nan)
    return DirectionMeasures(
        margin_ratio=smallest / norm * solution.value,
        correlation=correlation,
        directional_bregman_divergence=directional_bregman_divergence(projected, target, geometry),
        kkt_residual=_kkt_residual(projected, norm, margins, solution),
        violated=(margins[:, loose] < factor[:, None] * problem.bounds[loose]).sum(-1),
        removed_norm=np.linalg.norm(W - projected, axis=(-1, -2)) / factor,
    )


def asked_margins(problem: MarginProblem) -> Bool[np.ndarray, "constraint"]:
    """The constraints that ask for a margin: inequalities with a positive bound."""
    return ~problem.equality & (problem.bounds > 0)


def smallest_margin(
    margins: Float[np.ndarray, "batch constraint"], problem: MarginProblem
) -> Float[np.ndarray, "batch"]:
    """``min_j (a_j^T W b_j) / c_j`` over the constraints that ask for a margin."""
    asked = asked_margins(problem)
    return (margins[:, asked] / problem.bounds[asked]).min(-1)


def project_on_equalities(
    W: Float[np.ndarray, "batch d e"], problem: MarginProblem
) -> Float[np.ndarray, "batch d e"]:
    """Removes from matrices the part that acts on equality constraints, in Frobenius norm.

    The result is the nearest matrix with ``a_j^T W b_j = 0`` for every equality.
    """
    chosen = problem.equality
    if not chosen.any():
        return W
    left, right = _near_one(problem.left[chosen]), _near_one(problem.right[chosen])
    inverse = np.linalg.pinv((left @ left.T) * (right @ right.T), hermitian=True)
    excess = np.einsum("mc,bce,me->bm", left, W, right, optimize=True)
    return W - np.einsum("bm,mc,me->bce", excess @ inverse, left, right, optimize=True)


def _near_one(vectors: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m d"]:
    """Vectors times a power of two, so that their squares stay finite; which is exact."""
    return np.ldexp(vectors, -int(np.frexp(np.abs(vectors).max())[1]))


def _kkt_residual(
    W: Float[np.ndarray, "batch d e"],
    norm: Float[np.ndarray, "batch"],
    margins: Float[np.ndarray, "batch constraint"],
    solution: Solution,
) -> Float[np.ndarray, "batch"]:
    problem, multipliers = solution.problem, solution.multipliers
    combined = problem.apply_adjoint(multipliers)
    alignment = (W * combined).sum((-1, -2)) / (norm * solution.geometry.dual_norm(combined))
    weights = np.where(problem.equality, 0, multipliers)
    value = (weights * problem.bounds).sum()
    scaled = margins * (solution.value / norm)[:, None] - problem.bounds
    complementarity = (weights * np.abs(scaled)).sum(-1) / value
    asked = asked_margins(problem)
    infeasibility = np.maximum(-scaled[:, asked] / problem.bounds[asked], 0).max(-1)
    return np.maximum(np.maximum(1 - alignment, infeasibility), complementarity)
