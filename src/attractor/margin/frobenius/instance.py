"""One margin problem in coordinates, and accurate least-norm solutions on a set of constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float, Int

from attractor.margin import extended
from attractor.margin.scaling import ScaledConstraints

_LARGEST_EXPLICIT = 30_000_000
"""Entries of the m x (d e) matrix of constraints up to which it is formed."""
_REFINEMENTS = 6
_ROUNDING = np.finfo(np.float64).eps / 2


@dataclass(frozen=True)
class Instance:
    """One scaled instance, without absent slots and constraints that are zero.

    Attributes:
        left: Scaled ``a``.
        right: Scaled ``b``.
        bounds: Scaled ``c``.
        inequality: False for equalities.
        rows: Vectors whose inner products are those of the constraints, to rounding.
        slots: Where each constraint stands in the batch.
    """

    left: Float[np.ndarray, "m d"]
    right: Float[np.ndarray, "m e"]
    bounds: Float[np.ndarray, "m"]
    inequality: Bool[np.ndarray, "m"]
    rows: Float[np.ndarray, "m r"]
    slots: Int[np.ndarray, "m"]

    @classmethod
    def of(cls, scaled: ScaledConstraints, i: int) -> Instance:
        """Takes instance i out of a batch."""
        slots = np.flatnonzero((scaled.norms[i] > 0) & (scaled.inequality[i] | scaled.equality[i]))
        left, right = scaled.left[i, slots], scaled.right[i, slots]
        rows = _coordinates(left, right)
        return cls(left, right, scaled.bounds[i, slots], scaled.inequality[i, slots], rows, slots)

    def combine(self, multipliers: Float[np.ndarray, "m"]) -> Float[np.ndarray, "d e"]:
        """``sum_j x_j a_j b_j^T``."""
        return self.left.T @ (multipliers[:, None] * self.right)

    def margins(self, W: extended.Pair, chosen: Any = np.s_[:]) -> Float[np.ndarray, "m"]:
        """``a_j^T W b_j`` of the chosen constraints, correct to the last digit."""
        return extended.bilinear(self.left[chosen], W, self.right[chosen])[0]


def triangular_factor(rows: Float[np.ndarray, "k r"]) -> Float[np.ndarray, "s k"]:
    """The R factor of the QR decomposition of ``rows.T``."""
    return np.asarray(np.linalg.qr(rows.T, mode="r"))


def least_norm(
    instance: Instance, active: Int[np.ndarray, "s"], triangle: Float[np.ndarray, "s s"]
) -> tuple[extended.Pair, Float[np.ndarray, "s"]]:
    """The smallest W that meets the active constraints with equality, and its multipliers.

    Solves ``R^T R x = c`` for ``W = sum x_j a_j b_j^T`` and refines with residuals computed in
    extended precision, W being carried as an unevaluated sum. The error falls by about the
    condition of the constraints times machine precision a round, and ends at the rounding of W.

    Rounding W leaves some constraints short. Where their bounds are tiny, scaling W up until
    they hold would cost far more than asking of each a rounding error more than its bound; that
    is done where it is cheaper.

    Args:
        instance: The problem.
        active: Constraints that are linearly independent.
        triangle: Their R factor: ``rows[active].T = Q R``.
    """
    W, x = _refined(instance, active, triangle, instance.bounds[active])
    bounds = np.where(instance.inequality[active], instance.bounds[active], 0.0)
    short = bounds - instance.margins((W[0], np.zeros_like(W[0])), active)
    worst = np.max(short[bounds > 0] / bounds[bounds > 0], initial=0.0)
    norm = np.sqrt((W[0] ** 2).sum())
    if worst * norm <= 2 * _ROUNDING * np.abs(x).sum():
        return W, x
    padding = np.where(bounds > 0, _ROUNDING * norm, 0.0)
    return _refined(instance, active, triangle, instance.bounds[active] + padding)


def _refined(
    instance: Instance,
    active: Int[np.ndarray, "s"],
    triangle: Float[np.ndarray, "s s"],
    bounds: Float[np.ndarray, "s"],
) -> tuple[extended.Pair, Float[np.ndarray, "s"]]:
    """The smallest W with margins equal to the bounds on the active constraints."""
    left, right = instance.left[active], instance.right[active]
    shape = (left.shape[1], right.shape[1])
    W: extended.Pair = (np.zeros(shape), np.zeros(shape))
    x = np.zeros(len(active))
    residual, best = bounds, (np.inf, W, x)
    for _ in range(_REFINEMENTS):
        y = scipy.linalg.solve_triangular(triangle, residual, trans=1, check_finite=False)
        y = scipy.linalg.solve_triangular(triangle, y, check_finite=False)
        x = x + y
        W = extended.add(W, left.T @ (y[:, None] * right), 0.0)
        high, low = extended.bilinear(left, W, right)
        residual = (bounds - high) - low
        size = float(np.abs(residual).max(initial=0.0))
        if not size < best[0] / 2:
            break
        best = (size, W, x)
        if size <= 1e-17 * (1 + np.abs(W[0]).max(initial=0.0)):
            break
    return best[1], best[2]


def _coordinates(
    left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
) -> Float[np.ndarray, "m r"]:
    """Vectors with the inner products of ``a_j b_j^T``, no longer than there are constraints."""
    m, entries = len(left), left.shape[1] * right.shape[1]
    if m * entries <= _LARGEST_EXPLICIT:
        rows = (left[:, :, None] * right[:, None, :]).reshape(m, entries)
        return rows if entries <= m else triangular_factor(rows).T
    gram = (left @ left.T) * (right @ right.T)
    jitter = 4 * m * np.finfo(np.float64).eps
    while True:
        try:
            return np.linalg.cholesky(gram + jitter * np.eye(m))
        except np.linalg.LinAlgError:
            jitter *= 10
