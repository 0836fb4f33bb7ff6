"""The census of selections: which are feasible and which are locally optimal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.errors import Status
from attractor.geometry import Geometry
from attractor.records import Rows, Summary
from attractor.selection import Selection

if TYPE_CHECKING:
    import xarray as xr

_LISTED = 10
"""Locally optimal selections that a table lists before it counts the rest."""


@dataclass(frozen=True, eq=False, repr=False)
class SelectionCensus(Summary):
    """Which selections of a data set are locally optimal, and the evidence.

    Attributes:
        selections: The selections tested, with a leading axis.
        feasible: True where a solution of the margin problem was found.
        locally_optimal: True where every support token scores strictly below the selected one.
        worst_advantage: Smallest score advantage over a support token; infinite without support
            tokens, NaN where no solution was found.
        worst_token: (sequence, query, token) of that support token; -1 where there is none.
        norms: Norm of each solution; NaN where there is none.
        gaps: Relative duality gap of each solution; infinite where there is none.
        statuses: How each margin problem ended.
        geometry: The norm.
    """

    selections: Selection
    feasible: Bool[np.ndarray, "selection"]
    locally_optimal: Bool[np.ndarray, "selection"]
    worst_advantage: Float[np.ndarray, "selection"]
    worst_token: Int[np.ndarray, "selection 3"]
    norms: Float[np.ndarray, "selection"]
    gaps: Float[np.ndarray, "selection"]
    statuses: Any
    geometry: Geometry

    @property
    def locally_optimal_selections(self) -> Selection:
        """The locally optimal selections alone, in the order tested."""
        return self.selections[self.locally_optimal]

    def __len__(self) -> int:
        """Number of selections tested."""
        return len(self.feasible)

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        import xarray as xr

        per_selection = "feasible locally_optimal worst_advantage norms gaps".split()
        data: dict[str, Any] = {name: ("selection", getattr(self, name)) for name in per_selection}
        data["worst_token"] = (("selection", "position"), self.worst_token)
        data["statuses"] = ("selection", [str(status) for status in self.statuses])
        rows = ("selection", "sequence", "query", "token")
        data["selected"] = (rows, self.selections.mask)
        coordinates = {"position": ["sequence", "query", "token"]}
        return xr.Dataset(data, coords=coordinates, attrs={"geometry": self.geometry.name})

    def _summary(self) -> tuple[str, Rows]:
        settled = (Status.OPTIMAL, Status.INFEASIBLE)
        undecided = sum(status not in settled for status in self.statuses)
        rows = [
            ("geometry", self.geometry.name),
            ("feasible", str(int(self.feasible.sum()))),
            ("locally optimal", str(int(self.locally_optimal.sum()))),
        ]
        if undecided:
            rows.insert(1, ("not certified", str(undecided)))
        if self.feasible.any():
            rows.append(("relative gap", f"worst {self.gaps[self.feasible].max():.1e}"))
        found = np.flatnonzero(self.locally_optimal)
        for number in found[:_LISTED]:
            rows.append((_name(self.selections.mask[number]), f"norm {self.norms[number]:.6g}"))
        if len(found) > _LISTED:
            rows.append(("...", f"and {len(found) - _LISTED} more"))
        return f"Local optimality of {len(self)} selections", rows


def _name(mask: Bool[np.ndarray, "sequence query token"]) -> str:
    """The tokens selected, sequence by sequence; several in one row are joined by +."""
    rows = [
        "+".join(str(t) for t in np.flatnonzero(row)) for row in mask.reshape(-1, mask.shape[-1])
    ]
    text = ",".join(rows)
    return text if len(text) <= 40 else text[:37] + "..."
