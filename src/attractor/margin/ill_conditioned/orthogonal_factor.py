"""Systems ``(B B^T + diag(r)) x = y`` without forming the matrix, which would square errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int

_GUARD = 1e-14
"""Added to the factor, relative to it: constraints that repeat others make it singular."""


@dataclass(frozen=True)
class OrthogonalFactor:
    """The R of a QR decomposition of ``[B^T; diag(sqrt(r))]``.

    Rows are sorted by size and columns pivoted, which keeps the small ones accurate beside the
    large ones (Cox and Higham 1998).

    Attributes:
        triangle: R, for columns scaled to one, in the order of the pivots.
        order: That order.
        size: The scales.
    """

    triangle: Float[np.ndarray, "m m"]
    order: Int[np.ndarray, "m"]
    size: Float[np.ndarray, "m"]

    @classmethod
    def of(
        cls, blocks: Float[np.ndarray, "m n"], diagonal: Float[np.ndarray, "m"]
    ) -> OrthogonalFactor:
        """Factors a system.

        Raises:
            LinAlgError: If numbers are not finite.
        """
        m = len(diagonal)
        size = np.sqrt(np.einsum("mn,mn->m", blocks, blocks) + diagonal)
        size = np.where(size > 0, size, 1.0)
        own = np.diag(np.sqrt(diagonal) / size)
        rows = np.concatenate([own, blocks.T / size, _GUARD * np.eye(m)])
        if not np.isfinite(rows).all():
            raise np.linalg.LinAlgError("a system is not finite")
        rows = rows[np.argsort(-np.abs(rows).max(-1), kind="stable")]
        factors: Any = scipy.linalg.qr(rows, mode="r", pivoting=True, check_finite=False)
        return cls(factors[0][:m], factors[1], size)

    def half(self, y: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """``R^-T y``: the size of y in the norm of the inverse matrix."""
        scaled = (y / self.size)[self.order]
        return scipy.linalg.solve_triangular(self.triangle, scaled, trans=1, check_finite=False)

    def solve(self, y: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """The solution."""
        x = np.empty_like(y)
        half = self.half(y)
        x[self.order] = scipy.linalg.solve_triangular(self.triangle, half, check_finite=False)
        return x / self.size
