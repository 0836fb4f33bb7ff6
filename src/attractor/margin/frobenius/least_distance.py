"""Least-distance programming: the Frobenius margin problem as non-negative least squares.

Following Lawson and Hanson (1974, chapter 23), ``min ||w||`` over ``F w >= c`` is solved by
``min ||[F^T; c^T] u - (0, 1)||`` over ``u >= 0``: its residual vanishes exactly where the
constraints contradict each other, and then u is a Farkas certificate on few constraints;
otherwise the positive entries of u are the support, on which W is solved for afresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import scipy.linalg
from jaxtyping import Bool, Float, Int

from attractor.margin.batching import extended
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.methods import Candidates, Task

_VANISHED = 1e-13
"""Norm below which what is left of a constraint, the equalities taken out, is rounding."""
_TRIFLE = 1e-9
"""Share of the largest Farkas multiplier below which one may be rounding."""
_FAILURES = (np.linalg.LinAlgError, RuntimeError, ValueError, FloatingPointError)
_DEPENDENT = 1e-14
"""Distance of a constraint from the span of others, relative to its norm, that is rounding."""
_REDUNDANT = 1e-12
"""The same for equalities among themselves."""
_ROUNDING = np.finfo(np.float64).eps / 2
_LARGEST_EXPLICIT = 30_000_000
"""Entries of the m x (d e) matrix of constraints up to which it is formed."""
_REFINEMENTS = 6


def solve_by_least_distance(task: Task) -> Candidates:
    """Candidates by non-negative least squares, then an accurate solution on the support."""
    return _one_by_one(task.scaled, task.multipliers, pivoted=False)


def solve_by_active_set(task: Task) -> Candidates:
    """Candidates by the dual active-set method, from the support of the multipliers so far."""
    return _one_by_one(task.scaled, task.multipliers, pivoted=True)


def _one_by_one(scaled: ScaledConstraints, multipliers: np.ndarray, *, pivoted: bool) -> Candidates:
    """Each instance in turn; one that fails yields nothing and harms no other."""
    count, m, d = scaled.left.shape
    W = np.full((count, d, scaled.right.shape[-1]), np.nan)
    x = np.zeros((count, m))
    for i in range(count):
        try:
            W[i], x[i] = _solve(scaled, i, multipliers[i], pivoted)
        except _FAILURES:
            continue
    return W, x


def _solve(
    scaled: ScaledConstraints, i: int, start: np.ndarray, pivoted: bool
) -> tuple[np.ndarray, np.ndarray]:
    d, m, e = scaled.left.shape[-1], scaled.left.shape[-2], scaled.right.shape[-1]
    nothing, x = np.full((d, e), np.nan), np.zeros(m)
    impossible = np.flatnonzero(scaled.impossible[i])[:1]
    if impossible.size:
        x[impossible] = np.sign(scaled.bounds[i, impossible])
        return nothing, x
    instance = Instance.of(scaled, i)
    equalities = Equalities.of(instance)
    if equalities.conflict is not None:
        x[instance.slots] = equalities.conflict
        return nothing, x
    if pivoted:
        support = np.flatnonzero((start[instance.slots] > 0) & instance.inequality)
    else:
        u = _non_negative(instance, equalities)
        farkas = _contradiction(instance, equalities, u)
        if farkas is not None:
            x[instance.slots] = farkas
            return nothing, x
        support = np.flatnonzero(u > 0)
    W, found = improve(instance, equalities, support, most_steps=10 * m + 100 if pivoted else 0)
    x[instance.slots] = found
    return W, x


def _non_negative(instance: Instance, equalities: Equalities) -> Float[np.ndarray, "m"]:
    """Least-distance multipliers of the inequalities, zero on equalities."""
    u = np.zeros(len(instance.slots))
    chosen: Int[np.ndarray, "k"] = np.flatnonzero(instance.inequality)
    rows, bounds = equalities.project(instance, chosen)
    norms = np.sqrt(np.einsum("jr,jr->j", rows, rows))
    rows = np.where((norms > _VANISHED)[:, None], rows, 0.0)
    scale = np.where(norms > _VANISHED, norms, 1.0)
    rows, bounds = rows / scale[:, None], bounds / scale
    vanished = (norms <= _VANISHED) & (bounds <= _VANISHED)  # holds whatever W is
    chosen, rows, bounds, scale = (a[~vanished] for a in (chosen, rows, bounds, scale))
    largest = bounds.max(initial=0.0)
    if largest <= 0:
        return u
    if rows.shape[1] > rows.shape[0]:
        rows = triangular_factor(rows).T
    system = np.vstack([rows.T, bounds / largest])
    target = np.zeros(len(system))
    target[-1] = 1.0
    solution, _ = scipy.optimize.nnls(system, target, maxiter=30 * max(system.shape))
    u[chosen] = solution / scale
    return u


def _contradiction(
    instance: Instance, equalities: Equalities, u: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"] | None:
    """Farkas multipliers on as few constraints as these show the need of; None if they are none.

    Multipliers that only rounding made positive are taken out and the rest solved for again.
    """
    x = equalities.complete(instance, u)
    if not _vanishes(instance, x):
        return None
    kept = np.flatnonzero(u > _TRIFLE * u.max(initial=0.0))
    if kept.size == np.count_nonzero(u):
        return x
    rows, bounds = equalities.project(instance, kept)
    system = np.vstack([rows.T, bounds])
    target = np.zeros(len(system))
    target[-1] = 1.0
    fewer = np.zeros_like(u)
    fewer[kept] = np.linalg.lstsq(system, target, rcond=None)[0]
    fewer_x = equalities.complete(instance, fewer)
    return fewer_x if fewer.min() >= 0 and _vanishes(instance, fewer_x) else x


def _vanishes(instance: Instance, x: Float[np.ndarray, "m"]) -> bool:
    """Whether multipliers combine the constraints to zero, but for rounding, and the bounds not."""
    combined = instance.combine(x)
    small = np.sqrt(np.sum(combined**2)) <= 1e-12 * np.abs(x).sum()
    return bool(small and x @ instance.bounds > 0)


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


@dataclass(frozen=True)
class Instance:
    """One scaled instance, without absent slots and constraints that are zero.

    Attributes:
        left: Scaled ``a``.
        right: Scaled ``b``.
        bounds: Scaled ``c``.
        inequality: False for equalities.
        rows: Vectors whose inner products are those of the constraints, to rounding.
        slots: Slot of each constraint in the batch.
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
        slots = np.flatnonzero(scaled.nonzero[i])
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
