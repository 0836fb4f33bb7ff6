"""Constraints of one token out of several in each row, for many choices at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.margin.problem import MarginProblem, derived, places_of
from attractor.margin.selection import Selection
from attractor.support.errors import DuplicateTokensWarning
from attractor.tokens import Tokens

UNDECIDED = -1


@dataclass(frozen=True)
class Alternatives:
    """Rows in which one of several tokens is to beat every token outside; others are left out.

    A choice is an integer vector: for each row a token, or ``UNDECIDED``, which leaves the row
    without constraints.

    Attributes:
        keys: The keys of each row, ``(rows, T, d)``.
        queries: ``(rows, e)``.
        candidates: Tokens a row may choose, ``(rows, T)``.
        row: Row of each constraint.
        outsider: Token outside that each constraint is against.
        place: (sequence, query) of each row, ``(rows, 2)``.
    """

    keys: Float[np.ndarray, "rows token d"]
    queries: Float[np.ndarray, "rows e"]
    candidates: Bool[np.ndarray, "rows token"]
    row: Int[np.ndarray, "m"]
    outsider: Int[np.ndarray, "m"]
    place: Int[np.ndarray, "rows 2"]

    @classmethod
    def of(cls, tokens: Tokens, optimal: Selection) -> Alternatives:
        """The rows of a single data set that have tokens outside."""
        outside = tokens.mask & ~optimal.mask
        place = np.argwhere(outside.any(-1))
        sequence, query = place.T
        row, outsider = np.nonzero(outside[sequence, query])
        return cls(
            tokens.keys[sequence],
            tokens.queries[sequence, query],
            optimal.mask[sequence, query],
            row,
            outsider,
            place,
        )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.place)

    def problem(self, choices: Int[np.ndarray, "choice rows"]) -> MarginProblem:
        """One instance for each choice: the chosen tokens beat all outside by a margin of one."""
        chosen = choices[:, self.row]
        left = self.keys[self.row, chosen] - self.keys[self.row, self.outsider]
        right = np.broadcast_to(self.queries[self.row], (*left.shape[:-1], self.queries.shape[-1]))
        return MarginProblem(left, right, present=chosen != UNDECIDED)

    def margins(self, W: Float[np.ndarray, "choice d e"]) -> Float[np.ndarray, "choice rows token"]:
        """By how much each candidate beats the best token outside; minus infinity for others."""
        centered = self.keys - self.keys[:, :1]
        scores = np.einsum("rtd,nde,re->nrt", centered, W, self.queries, optimize=True)
        outside = np.zeros(self.candidates.shape, dtype=bool)
        outside[self.row, self.outsider] = True
        best = np.where(outside, scores, -np.inf).max(-1, keepdims=True)
        return np.where(self.candidates, scores - best, -np.inf)


def problem_against_outsiders(
    tokens: Tokens, chosen: Selection, several: Selection
) -> MarginProblem:
    """The chosen token of each row beats every token that is not among its several.

    Args:
        tokens: One data set or instances of them.
        chosen: One token for each row, among the several.
        several: Tokens that put no constraint on each other.
    """
    with warnings.catch_warnings():  # copies of tokens are found infeasible, which is the answer
        warnings.simplefilter("ignore", DuplicateTokensWarning)
        problem = MarginProblem.from_selection(tokens, chosen)
    present = problem.present.copy()
    present[present] = ~several.mask[places_of(problem, present)]
    return derived(problem, present=present)
