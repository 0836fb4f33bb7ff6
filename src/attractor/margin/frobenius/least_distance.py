"""Least-distance programming: the Frobenius margin problem as non-negative least squares.

Following Lawson and Hanson (1974, chapter 23), ``min ||w||`` over ``F w >= c`` is solved by
``min ||[F^T; c^T] u - (0, 1)||`` over ``u >= 0``: its residual vanishes exactly where the
constraints contradict each other, and then u is a Farkas certificate on few constraints;
otherwise the positive entries of u are the support, on which W is solved for afresh.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from attractor.margin.frobenius.active_set import Equalities, improve
from attractor.margin.frobenius.instance import Instance, triangular_factor
from attractor.margin.methods import Candidates, Task
from attractor.margin.scaling import ScaledConstraints

_VANISHED = 1e-13
"""Norm below which what is left of a constraint, the equalities taken out, is rounding."""
_TRIFLE = 1e-9
"""Share of the largest Farkas multiplier below which one may be rounding."""
_FAILURES = (np.linalg.LinAlgError, RuntimeError, ValueError, FloatingPointError)


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
    bounds = scaled.bounds[i]
    zero = scaled.norms[i] == 0
    impossible = zero & (
        (scaled.inequality[i] & (bounds > 0)) | (scaled.equality[i] & (bounds != 0))
    )
    if impossible.any():
        lone = np.argmax(impossible)
        x[lone] = np.sign(bounds[lone])
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
    from scipy.optimize import nnls

    if rows.shape[1] > rows.shape[0]:
        rows = triangular_factor(rows).T
    system = np.vstack([rows.T, bounds / largest])
    target = np.zeros(len(system))
    target[-1] = 1.0
    solution, _ = nnls(system, target, maxiter=30 * max(system.shape))
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
