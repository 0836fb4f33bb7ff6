"""Margins of matrices relative to the largest that a norm allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry
from attractor.margin import Solution
from attractor.papers.claim import Comparison, Data, Measurement


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


def beside_another_norm(
    measure: Callable[[Data, int, Geometry], Measurement],
    geometry: Geometry,
    wrong: Geometry,
    *,
    bound: float,
    reason: str,
) -> Comparison[Data, Geometry]:
    """What is missing of the largest margin in a norm, beside what is in another one.

    Args:
        measure: Measures one less the ratio, given the data, a seed and the norm.
        geometry: The norm of the statement.
        wrong: Another one, for the control.
        bound: How much may be missing.
        reason: Why so much.
    """
    return Comparison(
        f"1 - margin of W over the largest one in the {geometry.name} norm",
        measure,
        lambda data, seed: geometry,
        f"the same in the {wrong.name} norm",
        lambda data, seed: wrong,
        bound=bound,
        reason=reason,
    )
