"""The smallest matrix that keeps one of several tokens in each row, and what proves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.errors import Status
from attractor.margin.solution import Solution
from attractor.records import Rows, Summary
from attractor.selection import Selection

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
