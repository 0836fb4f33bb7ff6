"""Conjugate gradients on the free constraints, preconditioned by the blocks of their groups."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.large.groups import GroupedConstraints

_RIDGE = 1e-14
"""Added to the diagonal of a block, so that repeated constraints do not make it singular."""
_CROWDED = 0.5
"""Share of free constraints below which they are copied, rather than all gone through."""


@np.errstate(over="ignore", invalid="ignore")  # what overflows is not the best so far
def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    right: Float[np.ndarray, "k"],
    start: Float[np.ndarray, "k"],
    *,
    reduction: float,
    most: int,
) -> tuple[Float[np.ndarray, "k"], Float[np.ndarray, "k"]]:
    """Solution and residual of a symmetric positive definite system, the best on the way.

    Args:
        times: Multiplies by its matrix.
        precondition: Multiplies by something close to the inverse.
        right: Right-hand side.
        start: Initial iterate.
        reduction: Residual to reach, relative to the first.
        most: Most products with the matrix.
    """
    x, residual = start, right - times(start)
    size = np.sqrt(residual @ residual)
    best = size, x, residual
    stop = max(reduction * size, np.finfo(np.float64).eps * np.sqrt(right @ right))
    z = precondition(residual)
    direction, product, previous = np.zeros_like(right), residual @ z, np.inf
    for _ in range(most):
        if not size > stop or not product > 0:
            break
        direction = z + (product / previous) * direction
        image = times(direction)
        curvature = direction @ image
        if not curvature > 0:  # rounding of a singular system
            break
        step = product / curvature
        x = x + step * direction
        residual = residual - step * image
        size = np.sqrt(residual @ residual)
        best = min(best, (size, x, residual), key=operator.itemgetter(0))
        z = precondition(residual)
        previous, product = product, residual @ z
    return best[1], best[2]


class FreeSystem:
    """``(G_SS + delta I) x = r`` for the constraints S that are free.

    Constraints of one group are the ones that may lie close together, as tokens that are near
    duplicates do; the blocks of the preconditioner hold them exactly.
    """

    def __init__(
        self, constraints: GroupedConstraints, free: Bool[np.ndarray, "m"], delta: float
    ) -> None:
        """Factors the blocks."""
        self._whole = np.count_nonzero(free) >= _CROWDED * len(free)
        self._free = free
        self._constraints = constraints if self._whole else constraints.choose(free)
        self._delta = delta
        self._factors = []
        present = free if self._whole else np.ones(np.count_nonzero(free), dtype=bool)
        for rows, block in self._constraints.blocks():
            taken = present[rows].reshape(block.shape[:2])
            block = block * (taken[:, :, None] & taken[:, None, :])
            diagonal = np.arange(block.shape[-1])
            block[:, diagonal, diagonal] += np.where(taken, delta + _RIDGE, 1.0)
            self._factors.append((rows, _inverse_factors(block)))

    def solve(
        self,
        right: Float[np.ndarray, "m"],
        start: Float[np.ndarray, "m"],
        *,
        reduction: float,
        most: int = 500,
    ) -> tuple[Float[np.ndarray, "m"], float]:
        """The solution, zero off the free constraints, and the largest entry of its residual.

        Entries of ``right`` and ``start`` off the free constraints are not read; for the rest
        see ``conjugate_gradients``.
        """
        x, residual = conjugate_gradients(
            self._times,
            self._precondition,
            self._gather(right),
            self._gather(start),
            reduction=reduction,
            most=most,
        )
        return self._scatter(x), float(np.abs(residual).max(initial=0.0))

    def _gather(self, x: np.ndarray) -> np.ndarray:
        return np.where(self._free, x, 0.0) if self._whole else x[self._free]

    def _scatter(self, x: np.ndarray) -> np.ndarray:
        if self._whole:
            return x
        result = np.zeros(len(self._free))
        result[self._free] = x
        return result

    def _times(self, x: np.ndarray) -> np.ndarray:
        image = self._constraints.gram_times(x)
        if self._whole:
            image = np.where(self._free, image, 0.0)
        return image + self._delta * x

    def _precondition(self, residual: np.ndarray) -> np.ndarray:
        result = np.empty_like(residual)
        for rows, factors in self._factors:
            vectors = residual[rows].reshape(*factors.shape[:2], 1)
            result[rows] = (np.swapaxes(factors, -1, -2) @ (factors @ vectors)).ravel()
        return result


def _inverse_factors(blocks: Float[np.ndarray, "k s s"]) -> Float[np.ndarray, "k s s"]:
    """The K with ``K^T K`` the inverse of each block."""
    ridge = 0.0
    while True:
        try:
            return np.linalg.inv(np.linalg.cholesky(blocks + ridge * np.eye(blocks.shape[-1])))
        except np.linalg.LinAlgError:  # rounding made a block of repeated constraints indefinite
            ridge = 10 * max(ridge, _RIDGE)
