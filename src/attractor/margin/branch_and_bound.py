"""Best-first branch and bound over which of several tokens each row keeps."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.errors import InvalidInputError, Status
from attractor.geometry import Geometry
from attractor.margin._solve import solve
from attractor.margin.alternatives import UNDECIDED, Alternatives, problem_against_outsiders
from attractor.margin.solution import Solution
from attractor.selection import Selection
from attractor.tokens import Tokens

_OPENED_AT_ONCE = 8
"""Nodes whose children are solved together; more would be solved before better ones are known."""


@dataclass(frozen=True, order=True)
class _Node:
    """A choice for some rows; nothing below it has a norm under ``lower``."""

    lower: float
    number: int
    choice: Int[np.ndarray, "rows"]
    W: Float[np.ndarray, "d e"]


class BranchAndBound:
    """Best-first search over choices for the rows, cheapest bound first.

    Attributes:
        found: Value, lower bound and choice of every full choice that was solved.
        lower_bound: Bound on the norm of every choice, once it has run.
        infeasible: Whether every choice was proved infeasible.
    """

    def __init__(self, rows: Alternatives, geometry: Geometry, tolerance: float, most: int) -> None:
        self.rows, self.geometry, self.tolerance, self.most = rows, geometry, tolerance, most
        self.candidates = _without_copies(rows)
        self.alone = np.where(self.candidates, 0.0, np.inf)
        self.combinations = math.prod(int(count) for count in rows.candidates.sum(-1))
        self.solved = 0
        self.value, self.lower_bound, self.reached = np.inf, np.inf, 0.0
        self.found: dict[bytes, tuple[float, float, np.ndarray]] = {}
        self.queue: list[_Node] = []
        self.numbers = itertools.count()
        self.infeasible = False
        self.unknown = False

    def run(self) -> None:
        """Searches until no open node can hold a smaller norm than the best one known."""
        self._solve_rows_alone()
        if not self.candidates.any(-1).all():
            self.infeasible = True
            return
        only = np.where(self.candidates.sum(-1) == 1, self.candidates.argmax(-1), UNDECIDED)
        self._solve([only])
        if self.queue:
            self._find_incumbent()
        while self.queue and self.queue[0].lower <= self.value:
            opened = []
            while self.queue and len(opened) < _OPENED_AT_ONCE:
                if self.queue[0].lower > self.value:
                    break
                opened.append(heapq.heappop(self.queue))
            self.reached = min(opened[0].lower, self.lower_bound)
            self._solve([child for node in opened for child in self._children(node)])
        self.infeasible = not self.found and not self.unknown and not self.queue
        if not self.infeasible:
            self.lower_bound = min(self.lower_bound, self.value)

    def solve_against_outsiders(self, tokens: Tokens, optimal: Selection) -> list[Solution]:
        """A solution for every choice whose certificate leaves open that it is the smallest.

        Where the search took a token that another one beats under the same matrix, the other.
        Without a feasible choice, the solution of some infeasible one.
        """
        first = self.alone.argmin(-1) if len(self.rows) else np.zeros(0, dtype=int)
        near = [choice for _, lower, choice in self.found.values() if lower <= self.value]
        choices = np.stack(near or [first])
        solutions: list[Solution] = []
        for _ in range(1 + len(self.rows)):
            problems = [
                problem_against_outsiders(tokens, self._selection(choice, optimal), optimal)
                for choice in choices
            ]
            solutions = solve(problems, self.geometry, tolerance=self.tolerance)
            if not near:
                break
            margins = self._margins(np.stack([solution.W for solution in solutions]))
            kept = np.take_along_axis(margins, choices[..., None], -1)[..., 0]
            better = margins.max(-1) > kept + self.tolerance * np.abs(kept)
            if not better.any():
                break
            choices = np.where(better, margins.argmax(-1), choices)
        return solutions

    def _solve_rows_alone(self) -> None:
        """Bounds every candidate by the norm that its own row asks for; drops infeasible ones."""
        row, token = np.nonzero(self.candidates & (self.candidates.sum(-1) > 1)[:, None])
        if not row.size:
            return
        choices = np.full((row.size, len(self.rows)), UNDECIDED)
        choices[np.arange(row.size), row] = token
        solution = self._ask(choices)
        self.alone[row, token] = np.where(
            solution.status == Status.INFEASIBLE, np.inf, solution.dual_value
        )
        self.candidates &= np.isfinite(self.alone)

    def _find_incumbent(self) -> None:
        """Alternates between the best tokens under a matrix and the smallest matrix for them."""
        choice = self.alone.argmin(-1)
        while choice.tobytes() not in self.found:
            solution = self._ask(choice[None])
            if not np.isfinite(solution.value[0]):
                return
            self._keep(choice, float(solution.value[0]), float(solution.dual_value[0]))
            choice = self._best_candidates(solution.W)[0][0]

    def _best_candidates(
        self, W: Float[np.ndarray, "choice d e"]
    ) -> tuple[Int[np.ndarray, "choice rows"], Float[np.ndarray, "choice rows"]]:
        """The candidate of each row that does best under W, and its margin."""
        margins = self._margins(W)
        return margins.argmax(-1), margins.max(-1)

    def _margins(self, W: Float[np.ndarray, "choice d e"]) -> Float[np.ndarray, "choice rows T"]:
        """By how much each candidate that is left beats the best token outside."""
        return np.where(self.candidates, self.rows.margins(W), -np.inf)

    def _selection(self, choice: Int[np.ndarray, "rows"], optimal: Selection) -> Selection:
        """One token for each row of the data set: that chosen, else the first optimal one."""
        index = optimal.mask.argmax(-1)
        index[tuple(self.rows.place.T)] = choice
        mask = index[..., None] == np.arange(optimal.mask.shape[-1])
        return Selection(mask, np.zeros(index.shape, dtype=bool))

    def _children(self, node: _Node) -> list[Int[np.ndarray, "rows"]]:
        """Choices that between them hold every solution below a node."""
        open_ = node.choice == UNDECIDED
        if np.isnan(node.W).any():
            hardest = np.where(open_, self.alone.min(-1), -np.inf).argmax()
        else:
            best, margin = (array[0] for array in self._best_candidates(node.W[None]))
            short = open_ & (margin < 1 - self.tolerance)
            if not short.any():
                # W satisfies every row already: nothing below the node has a smaller norm.
                self.lower_bound = min(self.lower_bound, node.lower)
                return [np.where(open_, best, node.choice)]
            worst = short & (margin == margin[short].min())
            hardest = np.where(worst, self.alone.min(-1), -np.inf).argmax()
        children = np.tile(node.choice, (int(self.candidates[hardest].sum()), 1))
        children[:, hardest] = np.flatnonzero(self.candidates[hardest])
        return [*children]

    def _solve(self, asked: list[Int[np.ndarray, "rows"]]) -> None:
        """Solves nodes, keeps those that are full choices and queues the others."""
        for choice in asked:
            if choice.tobytes() in self.found:
                self.lower_bound = min(self.lower_bound, self.found[choice.tobytes()][1])
        new = {choice.tobytes(): choice for choice in asked if choice.tobytes() not in self.found}
        if not new:
            return
        choices = np.stack([*new.values()])
        solution = self._ask(choices)
        open_ = choices == UNDECIDED
        alone = np.where(open_, self.alone.min(-1), 0.0).max(-1, initial=0.0)
        lower = np.maximum(solution.dual_value, alone)
        for i, choice in enumerate(choices):
            if solution.status[i] == Status.INFEASIBLE:
                continue
            if open_[i].any():
                if lower[i] <= self.value:
                    node = _Node(float(lower[i]), next(self.numbers), choice, solution.W[i])
                    heapq.heappush(self.queue, node)
                continue
            self.lower_bound = min(self.lower_bound, float(lower[i]))
            if np.isfinite(solution.value[i]):
                self._keep(choice, float(solution.value[i]), float(lower[i]))
            else:
                self.unknown = True

    def _keep(self, choice: Int[np.ndarray, "rows"], value: float, lower: float) -> None:
        self.found[choice.tobytes()] = value, lower, choice
        self.value = min(self.value, value)

    def _ask(self, choices: Int[np.ndarray, "choice rows"]) -> Solution:
        """Solutions of a batch of choices."""
        if self.solved + len(choices) > self.most:
            raise InvalidInputError(
                "most",
                f"after {self.solved:,} problems of {self.combinations:,} choices the smallest "
                f"norm is only known to lie between {self.reached:.6g} and {self.value:.6g}",
                "Raise it, or keep fewer tokens",
            )
        self.solved += len(choices)
        return solve(self.rows.problem(choices), self.geometry, tolerance=self.tolerance)


def _without_copies(rows: Alternatives) -> Bool[np.ndarray, "rows token"]:
    """Candidates less those whose key is that of an earlier one, which are as good."""
    kept = np.zeros_like(rows.candidates)
    for keys, candidates, row in zip(rows.keys, rows.candidates, kept, strict=True):
        tokens = np.flatnonzero(candidates)
        _, first = np.unique(keys[tokens], axis=0, return_index=True)
        row[tokens[first]] = True
    return kept
