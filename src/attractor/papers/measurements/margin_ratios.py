"""Margins of matrices relative to the largest that a norm allows."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.margin import Solution


def margin_ratios(
    W: Float[np.ndarray, "*batch d e"], solution: Solution
) -> Float[np.ndarray, "*batch"]:
    """``min_j (a_j^T W b_j / c_j) ||W*|| / ||W||``: at most 1, and 1 on solutions only.

    NaN for a matrix of zeros.

    Args:
        W: Matrices.
        solution: That of a single problem without equalities, in the norm that counts.
    """
    problem = solution.problem
    least = (problem.margins(W) / problem.bounds).min(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return least * float(solution.value) / np.asarray(solution.geometry.norm(W))
