"""How the smallest norm moves when the data move: the envelope theorem for margin problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.errors import InvalidInputError
from attractor.precision import as_plain
from attractor.records import Rows, Summary

if TYPE_CHECKING:
    import xarray as xr

    from attractor.margin.solution import Solution

_LISTED = 5
"""Tokens that a table lists."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Summary):
    """Derivatives of the smallest norm ``v = ||W*||`` in the data of its margin problem.

    With multipliers scaled to dual norm one, by the envelope theorem,

        dv/dc_j = lambda_j,   dv/da_j = -lambda_j W* b_j,   dv/db_j = -lambda_j W*^T a_j.

    For a problem built from tokens the derivatives in keys and queries follow by the chain rule,
    as ``a_j`` is the selected key less the other one. Keys and queries count as separate
    variables there; ``total_in_keys`` adds the two where queries are keys.

    Where the solution or the multipliers are not unique the norm has one-sided derivatives only,
    and those shown are no more than one of its generalized gradients.

    Attributes:
        solution: The solution.
        left: Derivatives in the ``a_j``, ``(*instances, m, d)``; zero in empty slots, NaN where
            the problem has no solution, as are all others.
        right: Derivatives in the ``b_j``, ``(*instances, m, e)``.
        bounds: Derivatives in the ``c_j``, ``(*instances, m)``.
        keys: Derivatives in the keys, ``(*instances, n, T, d)``; None without tokens.
        queries: Derivatives in the queries, ``(*instances, n, K, e)``; None without tokens.
        same_for_all_solutions: Whether every other solution is known to give the same derivatives
            in keys and queries, or without tokens in the vectors, ``(*instances)``.
        unique_multipliers: Whether the multipliers are known to be unique, ``(*instances)``.
    """

    solution: Solution
    left: Float[np.ndarray, "*instances m d"]
    right: Float[np.ndarray, "*instances m e"]
    bounds: Float[np.ndarray, "*instances m"]
    keys: Float[np.ndarray, "*instances sequence token d"] | None
    queries: Float[np.ndarray, "*instances sequence query e"] | None
    same_for_all_solutions: Bool[np.ndarray, "*instances"]
    unique_multipliers: Bool[np.ndarray, "*instances"]

    @property
    def differentiable(self) -> Bool[np.ndarray, "*instances"]:
        """Whether the norm is known to have these derivatives."""
        return np.asarray(self.same_for_all_solutions & self.unique_multipliers)

    def total_in_keys(
        self, query_positions: int | Sequence[int]
    ) -> Float[np.ndarray, "*instances sequence token d"]:
        """Derivatives in the keys of self-attention, whose queries move along.

        Args:
            query_positions: Position of the key that is query 0, 1, ... of each sequence; for
                queries at every position, ``range(T)``. One number where there is one query.

        Raises:
            InvalidInputError: If there are no tokens, or the positions do not fit them.
        """
        if self.keys is None or self.queries is None:
            raise InvalidInputError(
                "solution",
                "its problem does not come from a selection of tokens",
                "Build the problem by MarginProblem.from_selection",
            )
        positions = np.atleast_1d(as_plain(query_positions))
        length, per_sequence = self.keys.shape[-2], self.queries.shape[-2]
        fits = positions.dtype.kind in "iu" and positions.shape == (per_sequence,)
        if not fits or self.keys.shape[-1] != self.queries.shape[-1]:
            raise InvalidInputError(
                "query_positions",
                f"got {query_positions!r} for {per_sequence} queries of dimension "
                f"{self.queries.shape[-1]} and keys of dimension {self.keys.shape[-1]}",
                "Give the position of one key for every query; they must have one dimension",
            )
        if ((positions < -length) | (positions >= length)).any():
            raise InvalidInputError(
                "query_positions",
                f"{positions.tolist()} go beyond {length} tokens",
                f"Give integers from {-length} to {length - 1}",
            )
        total = self.keys.copy()
        for query, position in enumerate(positions):
            total[..., position, :] += self.queries[..., query, :]
        return total

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        import xarray as xr

        lead = () if self.solution.problem.instances is None else ("instance",)
        data: dict[str, Any] = {
            "left": ((*lead, "constraint", "row"), self.left),
            "right": ((*lead, "constraint", "column"), self.right),
            "bounds": ((*lead, "constraint"), self.bounds),
            "same_for_all_solutions": (lead, self.same_for_all_solutions),
            "unique_multipliers": (lead, self.unique_multipliers),
            "differentiable": (lead, self.differentiable),
        }
        if self.keys is not None and self.queries is not None:
            selection = self.solution.problem.selection
            assert selection is not None
            data["keys"] = ((*lead, "sequence", "token", "row"), self.keys)
            data["queries"] = ((*lead, "sequence", "query", "column"), self.queries)
            data["selected"] = ((*lead, "sequence", "query", "token"), selection.mask)
        return xr.Dataset(data, attrs={"geometry": self.solution.geometry.name})

    def _summary(self) -> tuple[str, Rows]:
        title = "Sensitivity of the smallest norm"
        rows = [("geometry", self.solution.geometry.name)]
        if self.solution.problem.instances is not None:
            known = f"{int(self.differentiable.sum())} of {self.differentiable.size}"
            return title, [*rows, ("differentiable", known)]
        rows.append(("differentiable", "yes" if self.differentiable else self._why_not()))
        if self.keys is None:
            sizes = np.linalg.norm(self.left, axis=-1)
            named = [(f"constraint {j}", float(sizes[j])) for j in np.argsort(-sizes)]
        else:
            sizes = np.linalg.norm(self.keys, axis=-1)
            order = np.argsort(-sizes, axis=None)
            places = np.stack(np.unravel_index(order, sizes.shape), axis=-1)
            named = [(f"sequence {i}, token {t}", float(sizes[i, t])) for i, t in places]
        rows += [(name, f"|dv/dx| = {size:.6g}") for name, size in named[:_LISTED] if size > 0]
        return title, rows

    def _why_not(self) -> str:
        if not np.isfinite(self.solution.W).all():
            return "no: the problem has no solution"
        causes = []
        if not self.same_for_all_solutions:
            causes.append("other solutions may give others")
        if not self.unique_multipliers:
            causes.append("other multipliers may")
        return f"one-sided derivatives only: {', and '.join(causes)}"
