"""Accurate solutions on a support, and the dual active-set method that repairs a wrong one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int

from attractor.margin import extended
from attractor.margin.frobenius.instance import Instance, least_norm, triangular_factor

_DEPENDENT = 1e-14
"""Distance of a constraint from the span of others, relative to its norm, that is rounding."""
_REDUNDANT = 1e-12
"""The same for equalities among themselves."""
_ROUNDING = np.finfo(np.float64).eps / 2


@dataclass(frozen=True)
class Equalities:
    """The equalities of an instance: an independent subset, and the least W that meets them.

    Attributes:
        chosen: Equalities that are linearly independent and span the rest.
        basis: Orthonormal basis of their span, in the coordinates of ``Instance.rows``.
        triangle: Their R factor.
        particular: The smallest W that meets them.
        conflict: Farkas multipliers where they contradict each other, or None.
    """

    chosen: Int[np.ndarray, "k"]
    basis: Float[np.ndarray, "r k"]
    triangle: Float[np.ndarray, "k k"]
    particular: extended.Pair
    conflict: Float[np.ndarray, "m"] | None

    @classmethod
    def of(cls, instance: Instance) -> Equalities:
        """Factors the equalities of an instance."""
        held = np.flatnonzero(~instance.inequality)
        rows = instance.rows[held]
        if not held.size:
            zero = np.zeros((instance.left.shape[1], instance.right.shape[1]))
            empty = np.zeros((0, 0))
            return cls(held, np.zeros((rows.shape[1], 0)), empty, (zero, zero), None)
        factors: Any = scipy.linalg.qr(rows.T, mode="economic", pivoting=True)
        basis, triangle, order = factors
        diagonal = np.abs(np.diag(triangle))
        rank = int((diagonal > _REDUNDANT * diagonal[0]).sum())
        chosen, basis, square = held[order[:rank]], basis[:, :rank], triangle[:rank, :rank]
        particular, _ = least_norm(instance, chosen, square)
        conflict = None
        rest = held[order[rank:]]
        if rest.size:
            off = (instance.bounds - instance.margins(particular))[rest]
            worst = int(np.argmax(np.abs(off)))
            size = 1 + np.sqrt((particular[0] ** 2).sum())
            if np.abs(off[worst]) > 1e-11 * size:
                conflict = np.zeros(len(instance.slots))
                conflict[rest[worst]] = 1.0
                conflict[chosen] = -scipy.linalg.solve_triangular(
                    square, triangle[:rank, rank + worst]
                )
                conflict *= np.sign(conflict @ instance.bounds)
        return cls(chosen, basis, square, particular, conflict)

    def project(
        self, instance: Instance, chosen: Int[np.ndarray, "k"]
    ) -> tuple[Float[np.ndarray, "k r"], Float[np.ndarray, "k"]]:
        """Rows of the chosen inequalities off the span of the equalities, and what is left of c."""
        rows, bounds = instance.rows[chosen], instance.bounds[chosen]
        if not self.chosen.size:
            return rows, bounds
        for _ in range(2):  # once leaves rounding of the part taken out
            rows = rows - (rows @ self.basis) @ self.basis.T
        return rows, bounds - instance.margins(self.particular)[chosen]

    def complete(
        self, instance: Instance, multipliers: Float[np.ndarray, "m"]
    ) -> Float[np.ndarray, "m"]:
        """Multipliers of inequalities with those of equalities that make their sum smallest."""
        result = multipliers.copy()
        if self.chosen.size:
            image = self.basis.T @ (instance.rows.T @ multipliers)
            result[self.chosen] = -scipy.linalg.solve_triangular(self.triangle, image)
        return result


def improve(
    instance: Instance, equalities: Equalities, support: Int[np.ndarray, "s"], *, most_steps: int
) -> tuple[Float[np.ndarray, "d e"], Float[np.ndarray, "m"]]:
    """The smallest W on a support, repaired by the dual active-set method.

    Each step adds a violated constraint and drops those whose multiplier it drives to zero
    (Goldfarb and Idnani 1983), W and multipliers being solved for afresh on every new support.

    Args:
        instance: The problem.
        equalities: Its equalities, which are always active.
        support: Inequalities to start from.
        most_steps: Steps to take at most; none solves on the given support.

    Returns:
        W and multipliers, as a method returns them.
    """
    active, W, x = _solve_on(instance, np.concatenate([equalities.chosen, support]))
    for _ in range(most_steps):
        short = np.where(instance.inequality, instance.bounds - instance.margins(W), 0.0)
        short[active] = 0.0
        p = int(np.argmax(short))
        if short[p] <= _ROUNDING * np.sqrt((W[0] ** 2).sum()):
            break
        active, farkas = _admit(instance, active, x, p, short[p])
        if farkas is not None:
            return np.full(W[0].shape, np.nan), farkas
        active, W, x = _solve_on(instance, active)
    multipliers = np.zeros(len(instance.slots))
    norm = np.sqrt((W[0] ** 2).sum())
    multipliers[active] = x / (norm if norm > 0 else 1.0)
    return W[0], multipliers


def _solve_on(
    instance: Instance, active: Int[np.ndarray, "s"]
) -> tuple[Int[np.ndarray, "s"], extended.Pair, Float[np.ndarray, "s"]]:
    """Least-norm solution on a support, less the constraints that must not or cannot be on it."""
    while True:
        triangle = triangular_factor(instance.rows[active])
        size = np.sqrt(np.einsum("jr,jr->j", instance.rows[active], instance.rows[active]))
        diagonal = np.zeros(len(active))
        diagonal[: len(triangle)] = np.abs(np.diag(triangle))
        keep = (diagonal > _DEPENDENT * size) | ~instance.inequality[active]
        if keep.all():
            W, x = least_norm(instance, active, triangle)
            keep = (x >= 0) | ~instance.inequality[active]
            if keep.all():
                return active, W, x
        active = active[keep]


def _admit(
    instance: Instance,
    active: Int[np.ndarray, "s"],
    x: Float[np.ndarray, "s"],
    p: int,
    short: float,
) -> tuple[Int[np.ndarray, "s"], Float[np.ndarray, "m"] | None]:
    """The support once constraint p is made to hold, and Farkas multipliers where it cannot."""
    row = instance.rows[p]
    while True:
        basis, triangle = np.linalg.qr(instance.rows[active].T)
        inside = basis.T @ row
        outside = row - basis @ inside
        correction = basis.T @ outside
        inside, outside = inside + correction, outside - basis @ correction
        drop = scipy.linalg.solve_triangular(triangle, inside) if active.size else inside
        distance = outside @ outside
        blocking = np.flatnonzero(instance.inequality[active] & (drop > 0))
        ratios = x[blocking] / drop[blocking]
        first = float(ratios.min(initial=np.inf))
        full = short / distance if distance > _DEPENDENT**2 * (row @ row) else np.inf
        if np.isinf(first) and np.isinf(full):
            farkas = np.zeros(len(instance.slots))
            farkas[p], farkas[active] = 1.0, -drop
            return active, farkas
        if full <= first:
            return np.append(active, p), None
        x, short = x - first * drop, short - first * distance
        blocker = blocking[np.argmin(ratios)]
        active, x = np.delete(active, blocker), np.delete(x, blocker)
