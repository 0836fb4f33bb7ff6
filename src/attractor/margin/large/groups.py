"""Constraints of one instance as a linear operator that never holds a Gram matrix.

Every token of a sequence is compared with the selected one under the same query, so constraints
come in groups that share ``b``. With ``C_i = sum_j x_j a_j`` over group i and Z the matrix of the
distinct ``b``, the product of the Gram matrix and x is ``(G x)_j = a_j . (Z Z^T C)_i``: two passes
over the vectors ``a`` and one small product, whatever the number of unknowns of W.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

_LARGEST_GROUP = 128
"""Constraints above which a group is split: its Gram block is factored by the preconditioner."""
_CHUNK = 2**22
"""Numbers compared at a time while looking for groups."""


@dataclass(frozen=True)
class GroupedConstraints:
    """Rank-one constraints ``a_j b_j^T`` in groups of one ``b``.

    Attributes:
        left: The ``a_j``, group after group.
        right: The ``b`` of each group.
        starts: Index of the first constraint of each group, and the number of constraints.
        inner: Inner products of the ``b``; None where there are more groups than is worth it.
    """

    left: Float[np.ndarray, "m d"]
    right: Float[np.ndarray, "groups e"]
    starts: Int[np.ndarray, "boundaries"]
    inner: Float[np.ndarray, "groups groups"] | None

    @classmethod
    def of(
        cls, left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
    ) -> GroupedConstraints:
        """Finds the groups among consecutive constraints; the vectors ``a`` are not copied."""
        m, e = right.shape
        fresh = np.ones(m, dtype=bool)
        step = max(_CHUNK // e, 1)
        for start in range(1, m, step):
            stop = min(start + step, m)
            fresh[start:stop] = (right[start:stop] != right[start - 1 : stop - 1]).any(-1)
        first = np.flatnonzero(fresh)
        place = np.arange(m) - np.repeat(first, np.diff(np.append(first, m)))
        starts = np.flatnonzero(place % _LARGEST_GROUP == 0)
        return cls._of(left, right[starts], np.append(starts, m))

    @classmethod
    def _of(cls, left: np.ndarray, right: np.ndarray, starts: np.ndarray) -> GroupedConstraints:
        worth_it = len(right) <= 2 * right.shape[1]
        return cls(left, right, starts, right @ right.T if worth_it else None)

    def choose(self, chosen: Bool[np.ndarray, "m"]) -> GroupedConstraints:
        """A copy with the chosen constraints only."""
        counts = np.add.reduceat(chosen, self.starts[:-1], dtype=np.int64)
        filled = counts > 0
        starts = np.append(0, np.cumsum(counts[filled]))
        return self._of(self.left[chosen], self.right[filled], starts)

    def gram_times(self, x: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """``G x``: the margins of ``sum_j x_j a_j b_j^T``."""
        sums = self._sums(x)
        if self.inner is not None:
            return self._products(self.inner @ sums)
        return self._products(self.right @ (self.right.T @ sums))

    def combine(self, x: Float[np.ndarray, "m"]) -> Float[np.ndarray, "d e"]:
        """``sum_j x_j a_j b_j^T``."""
        return self._sums(x).T @ self.right

    def margins(self, W: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "m"]:
        """``a_j^T W b_j``."""
        return self._products(self.right @ W.T)

    def blocks(self) -> Iterator[tuple[slice, Float[np.ndarray, "groups size size"]]]:
        """Gram matrices of the groups, a run of groups of one size at a time, and their rows."""
        for groups, rows, a in self._runs:
            b = self.right[groups]
            yield rows, (a @ np.swapaxes(a, -1, -2)) * np.einsum("ge,ge->g", b, b)[:, None, None]

    def _sums(self, x: np.ndarray) -> Float[np.ndarray, "groups d"]:
        """``sum_j x_j a_j`` over each group."""
        sums = np.empty((len(self.right), self.left.shape[1]))
        for groups, rows, a in self._runs:
            np.matmul(x[rows].reshape(-1, 1, a.shape[1]), a, out=sums[groups][:, None, :])
        return sums

    def _products(self, vectors: np.ndarray) -> Float[np.ndarray, "m"]:
        """``a_j`` times the vector of its group."""
        products = np.empty(len(self.left))
        for groups, rows, a in self._runs:
            out = products[rows].reshape(-1, a.shape[1], 1)
            np.matmul(a, vectors[groups][:, :, None], out=out)
        return products

    @cached_property
    def _runs(self) -> list[tuple[slice, slice, Float[np.ndarray, "groups size d"]]]:
        """Consecutive groups of one size: their numbers, their rows, their ``a``."""
        sizes = np.diff(self.starts)
        edges = np.flatnonzero(np.diff(sizes)) + 1
        first, found = 0, []
        for last in (*edges.tolist(), len(sizes)):
            if last > first:
                rows = slice(int(self.starts[first]), int(self.starts[last]))
                a = self.left[rows].reshape(-1, int(sizes[first]), self.left.shape[1])
                found.append((slice(first, last), rows, a))
            first = last
        return found
