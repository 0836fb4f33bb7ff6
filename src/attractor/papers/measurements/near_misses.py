"""Wrong predictions that are nearly right, which a measurement must be able to refute."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.margin import MarginProblem, Solution, solve


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
