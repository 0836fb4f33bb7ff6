"""Margin problems in which each row keeps one of several tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.checks import check_count, check_kinds
from attractor.errors import InvalidInputError, Status
from attractor.geometry import Frobenius, Geometry, Lp, Schatten, get_geometry, has_norm_of
from attractor.margin.alternatives import Alternatives, check_several
from attractor.margin.branch_and_bound import BranchAndBound
from attractor.margin.solution import Solution
from attractor.records import Rows, Summary
from attractor.selection import Selection
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr


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
        import xarray as xr

        names = "value lower_bound gap uniqueness solved combinations".split()
        data: dict[str, Any] = {name: ((), getattr(self, name)) for name in names}
        data["status"] = ((), str(self.status))
        data["W"] = (("row", "column"), self.solution.W)
        data["selected"] = (("sequence", "query", "token"), self.selection.mask)
        return xr.Dataset(data, attrs={"geometry": self.solution.geometry.name})

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
    if tokens.instances is not None:
        raise InvalidInputError(
            "tokens", "they have an axis of instances", "Give one data set, such as tokens[0]"
        )
    geometry = get_geometry(geometry)
    check_several(tokens, optimal)
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
