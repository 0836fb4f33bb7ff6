"""The certified solution that a head is held against, kept and solved again as training moves."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry
from attractor.margin import MarginProblem, Solution, solve
from attractor.selection import Selection
from attractor.tokens import Tokens

_NEAREST = 8
"""Constraints of a query to begin with, where nothing is known of them."""


class Reference:
    """The last solution for one head, and what it was the solution of.

    Attributes:
        solution: The solution, or None before the first one.
        start: How it was come by: ``"cold"`` from no other, ``"warm"`` from the one before, or
            ``"reused"``.
    """

    def __init__(self, geometry: Geometry, tolerance: float) -> None:
        """Stores the norm and the relative duality gap to reach."""
        self.solution: Solution | None = None
        self.start = ""
        self._geometry, self._tolerance = geometry, tolerance
        self._tokens: Tokens | None = None
        self._selection: Selection | None = None

    def is_of(self, tokens: Tokens, selection: Selection) -> bool:
        """Whether the current solution is that of these tokens and this selection."""
        return (
            self._tokens is not None
            and selection == self._selection
            and _same(tokens, self._tokens)
        )

    def find(self, tokens: Tokens, selection: Selection, W: Float[np.ndarray, "d e"]) -> Solution:
        """The solution for a selection: the current one, or a new one that starts from it.

        Constraints with a multiplier before come first; under queries that select other tokens
        than before, and under all at first, those of smallest margin do.

        Args:
            tokens: The probe batch.
            selection: The tokens to keep; ties are kept equal.
            W: The matrix that selects them.
        """
        if self.solution is not None and self.is_of(tokens, selection):
            self.start = "reused"
            return self.solution
        problem = _problem(tokens, selection)
        kept = self._multipliers(selection)
        self.start = "cold" if np.isnan(kept).all() else "warm"
        start = _with_nearest(problem, kept, W)
        self.solution = solve(problem, self._geometry, tolerance=self._tolerance, start=start)
        self._tokens, self._selection = tokens, selection
        return self.solution

    def _multipliers(self, selection: Selection) -> Float[np.ndarray, "sequence query token"]:
        """Multipliers of the current solution, NaN where it says nothing of a query."""
        unknown = np.full(selection.mask.shape, np.nan)
        if self.solution is None or self._selection is None:
            return unknown
        if selection.mask.shape != self._selection.mask.shape:
            return unknown
        problem = self.solution.problem
        multipliers = np.zeros(selection.mask.shape)
        multipliers[problem.sequence, problem.query, problem.token] = self.solution.multipliers
        multipliers[(selection.mask != self._selection.mask).any(-1)] = np.nan
        return multipliers


def _same(a: Tokens, b: Tokens) -> bool:
    """Whether two probe batches are the same."""
    if a is b:
        return True
    arrays = ("keys", "queries", "mask")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays)


def _problem(tokens: Tokens, selection: Selection) -> MarginProblem:
    """The margin problem, less equalities ``0 = 0``: copies of the selected token."""
    problem = MarginProblem.from_selection(tokens, selection, ties="equal")
    idle = problem.equality & ~(problem.left.any(-1) & problem.right.any(-1))
    if not idle.any():
        return problem
    names = ("left", "right", "bounds", "equality", "sequence", "query", "token")
    kept = {name: getattr(problem, name)[~idle] for name in names}
    return MarginProblem(**kept, selection=selection)


def _with_nearest(
    problem: MarginProblem,
    kept: Float[np.ndarray, "sequence query token"],
    W: Float[np.ndarray, "d e"],
) -> Float[np.ndarray, "m"]:
    """Multipliers of the new problem, those unknown guessed from the margins of W."""
    places = (problem.sequence, problem.query, problem.token)
    start = kept[places]
    unknown = np.isnan(start)
    if not unknown.any():
        return start
    margins = np.full(kept.shape, np.inf)
    margins[places] = np.where(unknown, problem.margins(W), np.inf)
    nearest = np.argsort(margins, axis=-1)[..., :_NEAREST]
    guess = np.zeros(kept.shape)
    size = np.nanmax(kept, initial=0.0) or 1.0
    np.put_along_axis(guess, nearest, size, axis=-1)
    return np.where(unknown, guess[places], start)
