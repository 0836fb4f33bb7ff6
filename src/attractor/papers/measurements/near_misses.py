"""Wrong predictions that are nearly right, and starts far out that separate tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attractor.files.case import Case
from attractor.margin import MarginProblem, Solution, solve
from attractor.papers.measurements.attended import margin_ratios


def drop_largest_multiplier(solution: Solution) -> Float[np.ndarray, "d e"]:
    """The solution of the same problem without the constraint of the largest multiplier.

    It is the direction of one support token fewer; copies of it go with it. Where no constraint is
    left, every direction would do, and one that just breaks the last is returned.

    Args:
        solution: That of a single problem.
    """
    problem = solution.problem
    largest = _largest_multiplier(solution)
    apart = np.linalg.norm(problem.left - problem.left[largest], axis=-1)
    apart += np.linalg.norm(problem.right - problem.right[largest], axis=-1)
    size = np.linalg.norm(problem.left[largest]) + np.linalg.norm(problem.right[largest])
    present = problem.present & (apart > 1e-9 * size)
    left_out = MarginProblem(problem.left, problem.right, problem.bounds, problem.equality, present)
    found = solve(left_out, solution.geometry)
    if np.isfinite(found.value) and found.value > 1e-9 * solution.value:
        return found.W
    return turned_past(solution)


def turned_past(solution: Solution) -> Float[np.ndarray, "d e"]:
    """The solution, turned until it breaks the constraint of the largest multiplier by a little.

    The angle with the constraint's matrix is that of cosine -0.05.

    Args:
        solution: That of a single problem.
    """
    problem, largest = solution.problem, _largest_multiplier(solution)
    constraint = np.outer(problem.left[largest], problem.right[largest])
    constraint /= np.linalg.norm(constraint)
    along = solution.W - (solution.W * constraint).sum() * constraint
    if np.linalg.norm(along) < 1e-6 * np.linalg.norm(solution.W):  # a single constraint counts
        along = np.zeros_like(constraint)
        along.ravel()[np.abs(constraint).argmin()] = 1.0
        along -= (along * constraint).sum() * constraint
    length = np.linalg.norm(along)
    return -constraint if length < 1e-9 else along / length - 0.05 * constraint


def _largest_multiplier(solution: Solution) -> int:
    weights = np.where(solution.problem.equality, -np.inf, solution.multipliers)
    return int(weights.argmax())


def turned(matrix: Float[np.ndarray, "d e"], angle: float, seed: int) -> Float[np.ndarray, "d e"]:
    """A matrix turned by an angle towards a random one; reversed where it is a single number."""
    if matrix.size == 1:
        return -matrix
    across = np.random.default_rng([seed, 23]).standard_normal(matrix.shape)
    across -= (across * matrix).sum() / (matrix**2).sum() * matrix
    across *= np.linalg.norm(matrix) / np.linalg.norm(across)
    return np.cos(angle) * matrix + np.sin(angle) * across


_TURNS = np.linspace(0.0, 4.0, 401)


def faint_length(case: Case) -> float:
    """A length at which a matrix of the largest margin leaves other tokens next to no weight.

        R = ||W*|| log(64 T S / g)

    with S the largest range of scores in a row, g the smallest advantage of a best token and T
    the most tokens of a row: the weight of all others of a row is at most ``g / (64 S)``, so that
    each of them scores lower than the row's average and is pushed down. A matrix of a margin
    ratio mu is as far at ``R / mu``.
    """
    mask, best = case.tokens.mask, case.optimal.mask
    rows = (mask & ~best).any(-1)
    highest = np.where(mask, case.scores, -np.inf).max(-1)[rows]
    others = np.where(mask & ~best, case.scores, -np.inf).max(-1)[rows]
    lowest = np.where(mask, case.scores, np.inf).min(-1)[rows]
    most = int(mask.sum(-1).max())
    logarithm = np.log(64 * most * (highest - lowest).max() / (highest - others).min())
    return float(case.solution(selection=case.optimal).value) * float(logarithm)


def separating_starts(
    case: Case, seed: int, ratio: float, count: int
) -> Float[np.ndarray, "start d e"]:
    """The axis of the cone of matrices with a margin ratio, and random matrices on its edge.

    All are long enough to leave other tokens next to no weight.

    Args:
        case: The data.
        seed: Names the random directions.
        ratio: The margin ratio, at most 1.
        count: Random matrices.
    """
    solution = case.solution(selection=case.optimal)
    axis = solution.W / np.linalg.norm(solution.W)
    turned = np.random.default_rng([seed, 53]).standard_normal((count, 1, *axis.shape))
    turned /= np.linalg.norm(turned, axis=(-1, -2), keepdims=True)
    along = axis + _TURNS[:, None, None] * turned
    inside = margin_ratios(along, solution) >= ratio
    farthest = inside.cumprod(-1).sum(-1) - 1
    edge = along[np.arange(count), farthest]
    edge /= np.linalg.norm(edge, axis=(-1, -2), keepdims=True)
    return faint_length(case) / ratio * np.concatenate([axis[None], edge])


def separates(
    case: Case, matrices: Float[np.ndarray, "start d e"], ratio: float
) -> Bool[np.ndarray, "start"]:
    """Mask of the matrices that are in that cone, and that long."""
    solution = case.solution(selection=case.optimal)
    lengths = np.linalg.norm(matrices, axis=(-1, -2))
    return (margin_ratios(matrices, solution) >= ratio) & (lengths >= faint_length(case) / ratio)
