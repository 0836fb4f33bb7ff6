"""Whether a selection is locally optimal: whether training can end there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.margin._solve import solve
from attractor.margin.problem import MarginProblem
from attractor.margin.selection import Selection, token_scores
from attractor.margin.selections.tie_classes import is_of_classes, solve_tie_classes, tie_classes
from attractor.margin.solution import Solution
from attractor.results import Rows, Summary
from attractor.results.labeled import labeled
from attractor.support.checks import check_choice, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class LocalOptimality(Summary):
    """Whether selections are locally optimal, and the evidence.

    A selection is locally optimal if its margin problem is feasible and every support token of
    every row has a strictly lower score than the selected token. Tokens that are not support
    tokens may score higher (*Transformers as Support Vector Machines*, definition of locally
    optimal direction).

    Attributes:
        holds: True where the selection is locally optimal, ``(*instances)``.
        support_tokens: Tokens at the smallest margin, ``(*instances, n, K, T)``.
        score_advantage: Score of the selected token less that of each other token, NaN where
            masked or selected; with several selected tokens the lowest of their scores counts.
        worst_advantage: The smallest score advantage over a support token, ``(*instances)``;
            infinite without support tokens, NaN where infeasible.
        solution: The solution of the margin problem.
    """

    holds: Bool[np.ndarray, "*instances"]
    support_tokens: Bool[np.ndarray, "*instances sequence query token"]
    score_advantage: Float[np.ndarray, "*instances sequence query token"]
    worst_advantage: Float[np.ndarray, "*instances"]
    solution: Solution

    @property
    def worst_token(self) -> Any:
        """(sequence, query, token) of the support token with the smallest advantage; else None.

        With an axis of instances, a list with one such entry an instance.
        """
        at_support = np.where(self.support_tokens, self.score_advantage, np.inf)
        if self.holds.ndim == 0:
            return _place(at_support)
        return [_place(one) for one in at_support]

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        lead = ("instance",) if self.holds.ndim else ()
        rows = (*lead, "sequence", "query", "token")
        return labeled(
            {
                "holds": (lead, self.holds),
                "worst_advantage": (lead, self.worst_advantage),
                "support_tokens": (rows, self.support_tokens),
                "score_advantage": (rows, self.score_advantage),
            }
        )

    def _summary(self) -> tuple[str, Rows]:
        if self.holds.ndim:
            feasible = int(np.isfinite(self.solution.value).sum())
            rows = [
                ("selections", str(self.holds.size)),
                ("geometry", self.solution.geometry.name),
                ("feasible", str(feasible)),
                ("locally optimal", str(int(self.holds.sum()))),
            ]
            return "Local optimality", rows
        rows = [
            ("locally optimal", "yes" if self.holds else "no"),
            ("geometry", self.solution.geometry.name),
            ("margin problem", str(self.solution.status)),
            ("support tokens", str(int(self.support_tokens.sum()))),
        ]
        if self.worst_token is not None:
            n, k, t = self.worst_token
            rows.append(("smallest advantage over one", f"{float(self.worst_advantage):.6g}"))
            rows.append(("at", f"sequence {n}, query {k}, token {t}"))
        return "Local optimality", rows


def check_local_optimality(
    tokens: Tokens,
    head: Callable[[Any], Any],
    selection: Selection,
    solution: Solution | None = None,
    *,
    geometry: Geometry | str | None = None,
    ties: str = "strict",
) -> LocalOptimality:
    """Checks whether a selection is locally optimal.

    Support tokens are those of ``Solution.support``. Where the margin problem is infeasible, or
    no solution of it was found, the answer is no. In a norm that is not strictly convex they are
    those of the solution found, and another solution may have others.

    A support token of the same score makes the answer no by the definition. But between tokens
    of equal score there is no force, and training is observed to end at such selections. With
    ``ties="class"`` each selected token is replaced by its ``tie_classes``: one token of the class
    is to beat every token outside (``solve_several``), and support tokens outside the class are
    to score lower. This variant is derived, not quoted; without ties it is the definition.

    Args:
        tokens: The data set, with labels.
        head: Maps outputs to predictions.
        selection: The selection to check.
        solution: The solution of its margin problem, or with ``ties="class"`` that of
            ``solve_several`` for the classes; solved for if None.
        geometry: The norm to solve in, or its name; that of the solution, or Frobenius without one.
        ties: ``"strict"``, or ``"class"``.

    Raises:
        InvalidInputError: If the solution belongs to another selection or geometry, or inputs do
            not fit.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> selection = at.optimal_tokens(tokens, head)
        >>> at.check_local_optimality(tokens, head, selection)
        Local optimality
          locally optimal              yes
          geometry                     frobenius
          margin problem               optimal
          support tokens               2
          smallest advantage over one  1
          at                           sequence 0, query 0, token 1
    """
    check_kinds(tokens=(tokens, Tokens), solution=(solution, Solution | None))
    check_choice("ties", ties, ("strict", "class"))
    geometry = None if geometry is None else get_geometry(geometry)
    scores = token_scores(tokens, head)
    kept = tie_classes(tokens, head, selection) if ties == "class" else selection
    if solution is None:
        wanted = Frobenius() if geometry is None else geometry
        if ties == "class":
            solution = solve_tie_classes(tokens, kept, wanted)
        else:
            problem = MarginProblem.from_selection(tokens, selection, ties="equal")
            solution = solve(problem, wanted)
    elif not _belongs(solution, tokens, kept, ties):
        raise InvalidInputError(
            "solution",
            "it does not belong to this selection",
            "Solve MarginProblem.from_selection(tokens, selection), or for classes of ties "
            "solve_several(tokens, tie_classes(tokens, head, selection)), or leave it out",
        )
    elif geometry is not None and solution.geometry != geometry:
        raise InvalidInputError(
            "geometry",
            f"it is {geometry!r}, but the solution is one in {solution.geometry!r}",
            "Give one of the two and leave the other out",
        )
    advantage = score_advantage(scores, kept.mask)
    solved = np.isfinite(solution.value)
    worst = worst_advantage(advantage, solution.support_tokens)
    return LocalOptimality(
        np.asarray(solved & (worst > 0)),
        solution.support_tokens & np.asarray(solved)[..., None, None, None],
        advantage,
        np.asarray(np.where(solved, worst, np.nan)),
        solution,
    )


def _belongs(solution: Solution, tokens: Tokens, kept: Selection, ties: str) -> bool:
    if ties == "class":
        return is_of_classes(solution, tokens, kept)
    return solution.problem.selection is not None and solution.problem.selection == kept


def score_advantage(
    scores: Float[np.ndarray, "*instances sequence query token"],
    selected: Bool[np.ndarray, "*batch sequence query token"],
) -> Float[np.ndarray, "*batch sequence query token"]:
    """Score of the selected token less that of each other; NaN where masked or selected.

    With several selected tokens the lowest of their scores counts.

    Args:
        scores: Token scores, minus infinity where masked; leading axes broadcast.
        selected: True for selected tokens.
    """
    kept = np.where(selected, scores, np.inf).min(-1, keepdims=True)
    others = ~selected & (scores > -np.inf)
    return np.where(others, kept - np.where(others, scores, 0.0), np.nan)


def worst_advantage(
    advantage: Float[np.ndarray, "*batch sequence query token"],
    support: Bool[np.ndarray, "*batch sequence query token"],
) -> Float[np.ndarray, "*batch"]:
    """The smallest score advantage over a support token; infinite without support tokens.

    A feasible selection is locally optimal where this is positive.
    """
    return np.asarray(np.where(support, advantage, np.inf).min((-1, -2, -3)))


def _place(values: Float[np.ndarray, "sequence query token"]) -> tuple[int, ...] | None:
    """Where the smallest entry stands, if any is finite."""
    if not np.isfinite(values).any():
        return None
    return tuple(int(i) for i in np.unravel_index(np.argmin(values), values.shape))
