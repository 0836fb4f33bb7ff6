"""The contrast of a margin solution with the one for one support token fewer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attractor.files.case import Case
from attractor.margin import Solution
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.measurements.directions import CONVERGED, CONVERGED_BECAUSE
from attractor.papers.measurements.near_misses import drop_largest_multiplier


def contrast_with_one_token_fewer(
    quantity: str,
    distance: Callable[[Case, int, np.ndarray], Measurement],
    wrong_quantity: str = "largest 1 - cos of it with the solution for one support token fewer",
    *,
    solution: Callable[[Case], Solution] = lambda case: case.solution(selection=case.optimal),
    bound: float = CONVERGED,
    reason: str = CONVERGED_BECAUSE,
) -> Comparison[Case, np.ndarray]:
    """The distance of training or of a path from a solution, and from the near miss of it.

    Args:
        quantity: What the distance from the solution is, in words.
        distance: Measures the distance from a direction.
        wrong_quantity: What the distance from the near miss is.
        solution: The solution of a case; default: that of its best tokens.
        bound: The tolerance, of both.
        reason: Why this tolerance.
    """
    return Comparison(
        quantity,
        distance,
        lambda case, seed: solution(case).W,
        wrong_quantity,
        lambda case, seed: drop_largest_multiplier(solution(case)),
        bound=bound,
        reason=reason,
    )
