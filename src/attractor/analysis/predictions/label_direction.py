"""The direction predicted for a linear head that is trained beside attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius, Geometry
from attractor.margin import Solution, label_problem, label_support, solve
from attractor.margin.selection import Selection
from attractor.tokens import Tokens

_TOLERANCE = 1e-12
"""Gap required: slacks must distinguish rows at the margin from rows just beyond."""
_CLEARLY_AT_MARGIN = 1e-9
"""Slack up to which a row counted as at the margin is not in doubt."""
_CARRIES = 1e-6
"""Share of the norm from which the multiplier of a row shows that it is at the margin."""


@dataclass(frozen=True)
class LabelDirection:
    """Solutions of the label problem of each selection, and the rows that support them.

    Attributes:
        solution: The solutions, with an axis of selections.
        separable: Whether some head separates the labels, as certified.
        counted: Rows that have a label constraint: all but those of weight zero.
        at_margin: Rows at the smallest label margin.
        unsettled: Rows among these for which the certificate does not settle it.
        excess: By how much the label margin of each row, for the head of norm one, is above the
            smallest; NaN where there is no solution.
    """

    solution: Solution
    separable: Bool[np.ndarray, "selection"]
    counted: Bool[np.ndarray, "selection sequence query"]
    at_margin: Bool[np.ndarray, "selection sequence query"]
    unsettled: Bool[np.ndarray, "selection sequence query"]
    excess: Float[np.ndarray, "selection sequence query"]


def label_direction(tokens: Tokens, selection: Selection, geometry: Geometry) -> LabelDirection:
    """Solves the label problem of each selection, and decides label support.

    Args:
        tokens: One data set for each selection, with labels -1 and +1.
        selection: Tokens kept, with an axis of selections; several in a row weigh the same.
        geometry: The norm that training descends in ``W``.
    """
    # Of one column every unitarily invariant norm is the length; factors, whose product goes by
    # the nuclear norm, leave the head to the Frobenius norm as well.
    own = Frobenius() if geometry.unitarily_invariant else geometry
    problem = label_problem(tokens, selection, ties="equal")
    solution = solve(problem, own, tolerance=_TOLERANCE)
    at_margin = label_support(solution)
    rows = at_margin.shape
    slack = (problem.margins(solution.W) - problem.bounds).reshape(rows)
    norm = np.reshape(solution.norm, (-1, 1, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = solution.multipliers.reshape(rows) / norm
        excess = slack / norm
    unsettled = at_margin & (slack > _CLEARLY_AT_MARGIN) & (share < _CARRIES)
    counted = problem.present.reshape(rows)
    separable = np.asarray(at_margin.any((-1, -2)))
    return LabelDirection(solution, separable, counted, at_margin, unsettled, excess)
