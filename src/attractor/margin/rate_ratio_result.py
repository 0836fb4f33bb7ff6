"""The direction of attention trained beside a head, and the proof that it is the one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.problem import MarginProblem
from attractor.margin.relaxed import at_rows
from attractor.margin.solution import Solution
from attractor.records import Rows, Summary

if TYPE_CHECKING:
    import xarray as xr

_SUPPORT_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class RateRatioDirection(Summary):
    """Where attention points when its head grows at a fixed ratio of rates.

    With ``m_j`` the label margin of a row under the unit head, ``D`` is the maximizer of

        min_j ( c m_j + a_j^T D b_j )   subject to   a_j^T D b_j >= 0,   ||D|| <= 1,

    over the constraints ``(a_j, b_j)`` of attention. Multipliers prove it: for weights
    ``w_j >= 0`` of sum one and ``u_j >= 0``, no such D gives more than
    ``sum_j w_j c m_j + ||sum_j (w_j + u_j) a_j b_j^T||_dual``.

    Attributes:
        direction: ``D``, ``(*instances, d, e)``, of norm one; NaN where there is none.
        value: The smallest ``c m_j + a_j^T D b_j``, ``(*instances)``.
        gain: What of it attention adds: ``value - min_j c m_j``, ``(*instances)``.
        gap: Upper bound on what another direction gains more, relative to that bound and for the
            label margins as they are, ``(*instances)``.
        violation: Largest ``-a_j^T D b_j / (||a_j|| ||b_j|| ||D||_F)``, or zero, ``(*instances)``.
        weights: The ``w_j``, ``(*instances, m)``.
        barrier_weights: The ``u_j``, ``(*instances, m)``.
        status: A Status, or an object array of them; infeasible where no matrix keeps the
            selection, or no head tells the labels apart.
        ratio: The ratio ``c`` of the head's norm to that of attention, ``(*instances)``.
        critical_ratio: From this ratio on the direction is that of the relaxed problem, or in a
            norm that is not strictly convex the one found, ``(*instances)``.
        label_margins: The ``m_j`` of each row, ``(*instances, n, K)``.
        label: The solution of the label problem.
        problem: The constraints of attention, with bounds one.
        geometry: The norm of D.
    """

    direction: Float[np.ndarray, "*instances d e"]
    value: Any
    gain: Any
    gap: Any
    violation: Any
    weights: Float[np.ndarray, "*instances m"]
    barrier_weights: Float[np.ndarray, "*instances m"]
    status: Any
    ratio: Any
    critical_ratio: Any
    label_margins: Float[np.ndarray, "*instances sequence query"]
    label: Solution
    problem: MarginProblem
    geometry: Any

    @cached_property
    def support_tokens(self) -> Bool[np.ndarray, "*instances sequence query token"]:
        """Tokens at which ``c m_j + a_j^T D b_j`` is smallest, by slack relative to the gain."""
        margins = np.where(self.problem.present, at_rows(self.label_margins, self.problem), np.inf)
        excess = self.ratio[..., None] * (margins - margins.min(-1, keepdims=True))
        slack = excess + self.problem.margins(self.direction) - self.gain[..., None]
        return self._tokens(slack <= _SUPPORT_TOLERANCE * self.gain[..., None])

    @cached_property
    def barrier_tokens(self) -> Bool[np.ndarray, "*instances sequence query token"]:
        """Tokens that would overtake the selected one if it were allowed: ``a_j^T D b_j = 0``."""
        problem = self.problem
        size = np.linalg.norm(problem.left, axis=-1) * np.linalg.norm(problem.right, axis=-1)
        size = size * np.linalg.norm(self.direction, axis=(-2, -1))[..., None]
        return self._tokens(problem.margins(self.direction) <= _SUPPORT_TOLERANCE * size)

    def _tokens(
        self, constraints: Bool[np.ndarray, "*instances m"]
    ) -> Bool[np.ndarray, "*instances sequence query token"]:
        """The tokens that some constraints hold against the selected one."""
        assert self.problem.selection is not None
        mask = np.zeros(self.problem.selection.mask.shape, dtype=bool)
        problem = self.problem
        assert problem.sequence is not None
        chosen = np.nonzero(constraints & problem.present)
        place = tuple(a[chosen] for a in (problem.sequence, problem.query, problem.token))  # type: ignore[index]
        mask[(*chosen[:-1], *place)] = True
        return mask

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        import xarray as xr

        lead = () if self.problem.instances is None else ("instance",)
        names = "value gain gap violation ratio critical_ratio".split()
        data: dict[str, Any] = {name: (lead, getattr(self, name)) for name in names}
        data["direction"] = ((*lead, "row", "column"), self.direction)
        data["label_margins"] = ((*lead, "sequence", "query"), self.label_margins)
        tokens = (*lead, "sequence", "query", "token")
        data["support_tokens"] = (tokens, self.support_tokens)
        data["barrier_tokens"] = (tokens, self.barrier_tokens)
        statuses = np.vectorize(str, otypes=[str])(np.asarray(self.status, dtype=object))
        data["status"] = (lead, statuses if lead else str(self.status))
        return xr.Dataset(data, attrs={"geometry": self.geometry.name})

    def _summary(self) -> tuple[str, Rows]:
        title = "Direction of attention beside a growing head"
        rows = [("geometry", self.geometry.name)]
        if self.problem.instances is not None:
            found = np.isfinite(self.value)
            return title, [*rows, ("instances", f"{len(found)}, {int(found.sum())} of them found")]
        rows += [("status", str(self.status)), ("ratio of rates", f"{float(self.ratio):.6g}")]
        if np.isfinite(self.value):
            rows += [
                ("relaxed from ratio", f"{float(self.critical_ratio):.6g}"),
                ("smallest joint margin", f"{float(self.value):.10g}"),
                ("relative gap", f"{float(self.gap):.1e}"),
                ("support tokens", str(int(self.support_tokens.sum()))),
            ]
        return title, rows
