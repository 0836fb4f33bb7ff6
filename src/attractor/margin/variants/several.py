"""Margin problems in which each row keeps one of several tokens."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Frobenius, Geometry, Lp, Schatten, get_geometry, has_norm_of
from attractor.margin._solve import solve
from attractor.margin.problem import check_one_data_set, check_tokens_kept
from attractor.margin.selection import Selection
from attractor.margin.selections.alternatives import (
    UNDECIDED,
    Alternatives,
    problem_against_outsiders,
)
from attractor.margin.solution import Solution
from attractor.results import Rows, Summary
from attractor.results.labeled import labeled
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

_OPENED_AT_ONCE = 8
"""Nodes whose children are solved together; more would be solved before better ones are known."""


@dataclass(frozen=True, eq=False, repr=False)
class SeveralSolution(Summary):
    """The smallest of the solutions of many margin problems, one for each choice of tokens.

    Attributes:
        status: Optimal where the relative gap is within the tolerance; infeasible if every choice
            is; else stopped early.
        solutions: A solution for each minimizer, the first with the smallest norm: all whose
            norms the certificates cannot tell apart, but one for each matrix. Where every choice
            is infeasible, the solution of one of them.
        uniqueness: ``"unique"``, ``"not unique"`` or ``"not known"``: whether other matrices have
            the same norm.
        lower_bound: No choice has a solution of smaller norm.
        solved: Margin problems solved.
        combinations: Choices there are: what enumeration would have to solve.
    """

    status: Status
    solutions: tuple[Solution, ...]
    uniqueness: str
    lower_bound: float
    solved: int
    combinations: int

    @property
    def solution(self) -> Solution:
        """The solution with the smallest norm; its problem says which tokens it keeps."""
        return self.solutions[0]

    @property
    def selection(self) -> Selection:
        """The token that the first solution keeps in each row."""
        assert self.solution.problem.selection is not None
        return self.solution.problem.selection

    @property
    def value(self) -> float:
        """The smallest norm; infinite if every choice is infeasible."""
        return float(self.solution.value)

    @property
    def gap(self) -> float:
        """``(value - lower bound) / value``; infinite without a solution."""
        if not np.isfinite(self.value):
            return np.inf
        return max(self.value - self.lower_bound, 0.0) / self.value if self.value > 0 else 0.0

    def to_xarray(self) -> xr.Dataset:
        """The matrix, the tokens kept and the numbers above as labeled arrays."""
        names = "value lower_bound gap uniqueness solved combinations".split()
        data: dict[str, Any] = {name: ((), getattr(self, name)) for name in names}
        data["status"] = ((), str(self.status))
        data["W"] = (("row", "column"), self.solution.W)
        data["selected"] = (("sequence", "query", "token"), self.selection.mask)
        return labeled(data, attributes={"geometry": self.solution.geometry.name})

    def _summary(self) -> tuple[str, Rows]:
        rows = [
            ("status", str(self.status)),
            ("geometry", self.solution.geometry.name),
            ("problems solved", f"{self.solved:,}, for {self.combinations:,} choices"),
        ]
        if np.isfinite(self.value):
            kept = self.selection.index.ravel()
            rows += [
                ("norm", f"{self.value:.10g}"),
                ("relative gap", f"{self.gap:.1e}"),
                ("keeps", np.array2string(kept, threshold=10)),
                ("solution", f"{self.uniqueness}; {len(self.solutions)} found"),
            ]
        return "Smallest solution that keeps one of several tokens", rows


_SAME = 1e-6
"""Relative distance within which a matrix is taken for its minimizer, whatever its gap."""


def solve_several(
    tokens: Tokens,
    optimal: Selection,
    geometry: Geometry | str = Frobenius(),  # noqa: B008 - immutable
    *,
    tolerance: float = 1e-9,
    most: int = 10_000,
) -> SeveralSolution:
    """The smallest W under which some optimal token of each row beats every other token.

        min ||W||   subject to   max_(a in O_i) min_(t not in O_i) (x_ia - x_it)^T W z_i >= 1

    for all rows i. This is a union of margin problems, one for each choice of ``a_i`` in ``O_i``,
    and not convex. Branch and bound: the solution with the rows chosen so far bounds all that
    follow from below, and where it already satisfies the other rows nothing is left to choose.
    Asking every optimal token to beat every other one instead gives a larger norm. Source:
    *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), regularization path
    of nonlinear heads.

    Args:
        tokens: A single data set.
        optimal: The tokens ``O_i``, one or more in each row.
        geometry: The norm, or its name.
        tolerance: Relative gap to solve to.
        most: Largest number of margin problems to solve.

    Raises:
        InvalidInputError: If the selection does not fit, the tokens have an axis of instances,
            or the minimum is not found within ``most`` problems.
    """
    check_kinds(tokens=(tokens, Tokens), optimal=(optimal, Selection))
    most = check_count("most", most)
    check_one_data_set(tokens)
    geometry = get_geometry(geometry)
    check_tokens_kept(tokens, optimal, "optimal", several=True)
    search = BranchAndBound(Alternatives.of(tokens, optimal), geometry, tolerance, most)
    search.run()
    solutions = search.solve_against_outsiders(tokens, optimal)
    distinct = _distinct(sorted(solutions, key=lambda s: s.value))
    best = distinct[0].value
    lower = min(search.lower_bound, best)
    feasible = bool(np.isfinite(best))
    closed = feasible and best - lower <= 2 * tolerance * best
    status = Status.OPTIMAL if closed else Status.STOPPED_EARLY
    return SeveralSolution(
        status=Status.INFEASIBLE if search.infeasible else status,
        solutions=tuple(distinct),
        uniqueness=_uniqueness(distinct, search.combinations) if closed else "not known",
        lower_bound=lower,
        solved=search.solved,
        combinations=search.combinations,
    )


def _distinct(solutions: list[Solution]) -> list[Solution]:
    """Solutions whose matrices differ by more than their gaps allow; the first of each."""
    kept: list[Solution] = []
    for solution in solutions:
        if not any(_same(solution, other) for other in kept):
            kept.append(solution)
    return kept


def _same(one: Solution, other: Solution) -> bool:
    """Whether two matrices, each within its distance of a minimizer, may be the same one."""
    if np.isnan(other.W).any():
        return True
    return float(one.geometry.norm(one.W - other.W)) <= _distance(one) + _distance(other)


def _distance(solution: Solution) -> float:
    """Bound on the norm of ``W - W*``, as far as the gap gives one."""
    geometry = solution.geometry
    if has_norm_of(geometry, Lp) and geometry.p > 2:
        geometry = Schatten(geometry.p)  # whose bound is Clarkson's, and his for both
    known = geometry.distance_to_solution(solution.value, solution.gap)
    return float(np.fmax(known, _SAME * solution.value))


def _uniqueness(solutions: list[Solution], choices: int) -> str:
    """Whether other matrices have the norm of the first solution, which is the smallest."""
    if len(solutions) > 1:
        return "not unique"
    unique = str(solutions[0].uniqueness)
    # Other choices may share a norm that is not strictly convex, though no search met them.
    settled = choices == 1 or solutions[0].geometry.unique or unique == "not unique"
    return unique if settled else "not known"


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
        """Bounds every candidate by the norm that its own row requires; drops infeasible ones."""
        row, token = np.nonzero(self.candidates & (self.candidates.sum(-1) > 1)[:, None])
        if not row.size:
            return
        choices = np.full((row.size, len(self.rows)), UNDECIDED)
        choices[np.arange(row.size), row] = token
        solution = self._solve_batch(choices)
        self.alone[row, token] = np.where(
            solution.status == Status.INFEASIBLE, np.inf, solution.dual_value
        )
        self.candidates &= np.isfinite(self.alone)

    def _find_incumbent(self) -> None:
        """Alternates between the best tokens under a matrix and the smallest matrix for them."""
        choice = self.alone.argmin(-1)
        while choice.tobytes() not in self.found:
            solution = self._solve_batch(choice[None])
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

    def _solve(self, nodes: list[Int[np.ndarray, "rows"]]) -> None:
        """Solves nodes, keeps those that are full choices and queues the others."""
        for choice in nodes:
            if choice.tobytes() in self.found:
                self.lower_bound = min(self.lower_bound, self.found[choice.tobytes()][1])
        new = {choice.tobytes(): choice for choice in nodes if choice.tobytes() not in self.found}
        if not new:
            return
        choices = np.stack([*new.values()])
        solution = self._solve_batch(choices)
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

    def _solve_batch(self, choices: Int[np.ndarray, "choice rows"]) -> Solution:
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
