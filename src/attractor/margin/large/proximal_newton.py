"""Margin problems of many constraints in any norm of entries or singular values.

A proximal point method in W and the multipliers x together. Each stage solves

    max_(u >= 0) min_W  ||W|| + sum_j u_j (c_j - a_j^T W b_j)
                        + 1/(2 tau) ||W - W'||_F^2 - delta/2 ||u - x||^2

around the W' and x of before, u being free on equalities. The inner minimum is the proximal point
of ``W' + tau sum_j u_j a_j b_j^T``; what is left is a smooth concave function of u, climbed by
Newton's method on the constraints that are short or carry a multiplier, projected on u >= 0. The
system is solved by conjugate gradients, so that nothing as large as a Gram matrix is formed
(the semismooth Newton augmented Lagrangian methods of Jiang, Sun and Toh 2014). As tau grows and
delta falls, stages gain on each other superlinearly.

The proximal point of Z minimizes ``tau ||W|| + 1/2 ||W - Z||_F^2``. For an l_p norm of the entries
it acts on their absolute values, for one of the singular values on those; its derivative there is
a diagonal plus a rank-one matrix, whatever p is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry, Lp, Schatten
from attractor.margin.large.conjugate_gradients import conjugate_gradients
from attractor.margin.large.instance import LargeInstance, Report
from attractor.margin.methods import Candidates, Task

_FIRST_TAU, _GROWTH = 0.3, 2.0
"""Of tau, in units of the dual norm of the Frobenius solution, and its factor a stage."""
_FIRST_DELTA, _FALL, _LAST_DELTA = 1e-2, 0.3, 1e-9
"""Of delta, in units of tau, its factor a stage, and its end."""
_RETREAT = 10.0
"""Divisor of tau after a stage that did not converge."""
_STAGES, _STALLED = 80, 14
_STEPS, _HALVINGS = 40, 12
_CLOSENESS = 0.1
"""Residual of a stage, in units of how far it moved, at which it is done."""
_REDUCTION, _MOST_PRODUCTS = 0.05, 400
_ASCENT, _NOISE = 1e-4, 1e-14
"""Least share of the ascent promised to first order; share of the height that is rounding."""
_NEWTON_STEPS = 12
_TIED = 1e-12
"""Difference of singular values, relative to the largest, that is rounding."""


@dataclass(frozen=True)
class _Center:
    """Proximal center and weights of a stage."""

    W: Float[np.ndarray, "d e"]
    x: Float[np.ndarray, "m"]
    tau: float
    delta: float


@dataclass(frozen=True)
class _Iterate:
    """Multipliers, their W, and the function climbed with its gradient."""

    u: Float[np.ndarray, "m"]
    point: ProximalPoint
    margins: Float[np.ndarray, "m"]
    height: float
    gradient: Float[np.ndarray, "m"]


def solve_by_proximal_newton(task: Task, report: Report) -> Candidates:
    """Candidates for one instance with many constraints, from its Frobenius solution.

    Args:
        task: A batch of one instance.
        report: Callback, called at the end of every stage.
    """
    W, multipliers = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    if not np.isfinite(task.W).all():
        return W, multipliers
    if not task.W.any():
        return task.W, multipliers
    instance = LargeInstance.of(task.scaled)
    start = task.W[0], task.multipliers[0, instance.slots]
    W[0], multipliers[0, instance.slots] = _climb(instance, task, start, report)
    return W, multipliers


def _climb(
    instance: LargeInstance,
    task: Task,
    start: tuple[np.ndarray, np.ndarray],
    report: Report,
) -> tuple[np.ndarray, np.ndarray]:
    """The best W and the best multipliers of all stages."""
    W, x = start
    geometry, margins = task.geometry, instance.constraints.margins(W)
    tau, share, growth = _FIRST_TAU * float(geometry.dual_norm(W)), _FIRST_DELTA, _GROWTH
    best_W, best_x = W, x
    value, lower = instance.bounds_from(float(geometry.norm(W)), x, margins)
    stalled = 0
    for number in range(_STAGES):
        iterate, done = _solve_stage(instance, _Center(W, x, tau, share * tau), geometry)
        size = float(geometry.dual_norm(instance.constraints.combine(iterate.u))) or 1.0
        settled = instance.settle(iterate.point.W, iterate.u)
        unchanged = settled is iterate.point.W
        norm = iterate.point.norm if unchanged else float(geometry.norm(settled))
        margins = iterate.margins if unchanged else instance.constraints.margins(settled)
        new_value, new_lower = instance.bounds_from(norm, iterate.u / size, margins)
        before = value - lower
        if new_value < value:
            value, best_W = new_value, settled
        if new_lower > lower:
            lower, best_x = new_lower, iterate.u / size
        report(number + 1, 1 - lower / value)
        stalled = 0 if value - lower < 0.9 * before else stalled + 1
        if value - lower <= task.tolerance / 2 * value or stalled >= _STALLED:
            break
        if done:
            W, x = iterate.point.W, iterate.u
            tau, share = growth * tau, max(_FALL * share, _LAST_DELTA)
        else:  # the stage was too long
            tau, share, growth = tau / _RETREAT, _RETREAT * share, np.sqrt(growth)
    return instance.scaled_to_meet(best_W), best_x


def _solve_stage(
    instance: LargeInstance, center: _Center, geometry: Geometry
) -> tuple[_Iterate, bool]:
    """One stage, as closely as it pays, and whether its end was reached."""
    inequality, delta = instance.inequality, center.delta
    iterate = _evaluate(instance, center, geometry, center.x)
    for step in range(_STEPS):
        u, h = iterate.u, iterate.gradient
        ahead = u + h / delta
        residual = delta * (u - np.where(inequality, np.maximum(ahead, 0.0), ahead))
        moved = delta * np.sqrt(((u - center.x) ** 2).sum())
        rounding = _NOISE * np.sqrt(len(u)) * (1 + np.sqrt((iterate.point.W**2).sum()))
        if np.sqrt(residual @ residual) <= max(_CLOSENESS * moved if step else 0.0, rounding):
            return iterate, True
        direction = _newton_direction(instance, center, iterate)
        iterate = _search(instance, center, geometry, iterate, direction)
    return iterate, False


def _search(
    instance: LargeInstance,
    center: _Center,
    geometry: Geometry,
    iterate: _Iterate,
    direction: Float[np.ndarray, "m"],
) -> _Iterate:
    """The first point along a projected direction that ascends enough, or the last one tried."""
    trial, length = iterate, 1.0
    for _ in range(_HALVINGS):
        u = iterate.u + length * direction
        u = np.where(instance.inequality, np.maximum(u, 0.0), u)
        trial = _evaluate(instance, center, geometry, u)
        promised = _ASCENT * (iterate.gradient @ (u - iterate.u)) - _NOISE * abs(iterate.height)
        if trial.height >= iterate.height + promised:
            break
        length /= 2
    return trial


def _evaluate(
    instance: LargeInstance, center: _Center, geometry: Geometry, u: Float[np.ndarray, "m"]
) -> _Iterate:
    tau, delta = center.tau, center.delta
    Z = center.W + tau * instance.constraints.combine(u)
    point = ProximalPoint.of(Z, tau, geometry)
    margins = instance.constraints.margins(point.W)
    moved = u - center.x
    height = instance.bounds @ u - delta / 2 * (moved @ moved) + point.norm
    height += ((point.W - Z) ** 2).sum() / (2 * tau) - (Z**2).sum() / (2 * tau)
    gradient = instance.bounds - margins - delta * moved
    return _Iterate(u, point, margins, float(height), gradient)


def _newton_direction(
    instance: LargeInstance, center: _Center, iterate: _Iterate
) -> Float[np.ndarray, "m"]:
    """Newton's direction on the constraints that are short or carry a multiplier."""
    u, h, tau = iterate.u, iterate.gradient, center.tau
    free = ~instance.inequality | (u > 0) | (h > 0)
    chosen = instance.constraints.choose(free)

    def times(v: np.ndarray) -> np.ndarray:
        moved = iterate.point.derivative(chosen.combine(v))
        return tau * chosen.margins(moved) + center.delta * v

    found, _ = conjugate_gradients(
        times,
        lambda residual: residual,
        h[free],
        np.zeros(np.count_nonzero(free)),
        reduction=_REDUCTION,
        most=_MOST_PRODUCTS,
    )
    direction = np.zeros_like(u)
    direction[free] = found
    return direction


@dataclass(frozen=True)
class ProximalPoint:
    """The proximal point of a matrix, and the derivative of the map there.

    Attributes:
        W: The proximal point.
        norm: Its norm.
    """

    W: Float[np.ndarray, "d e"]
    norm: float
    _basis: tuple[np.ndarray, np.ndarray] | None
    _signs: np.ndarray | None
    _before: np.ndarray
    _after: np.ndarray
    _diagonal: np.ndarray
    _bump: np.ndarray

    @classmethod
    def of(cls, Z: Float[np.ndarray, "d e"], tau: float, geometry: Geometry) -> ProximalPoint:
        """Evaluates the map."""
        if isinstance(geometry, Schatten):
            left, before, right = np.linalg.svd(Z, full_matrices=False)
            after, diagonal, bump = proximal_values(before, tau, geometry.p)
            W, basis, signs = (left * after) @ right, (left, right.T), None
        else:
            assert isinstance(geometry, Lp)
            before = np.abs(Z).ravel()
            after, diagonal, bump = proximal_values(before, tau, geometry.p)
            basis, signs = None, np.where(Z < 0, -1.0, 1.0)
            W = signs * after.reshape(Z.shape)
        return cls(W, float(geometry.norm(W)), basis, signs, before, after, diagonal, bump)

    def derivative(self, H: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"]:
        """Derivative of W along H."""
        if self._basis is None:
            h = (self._signs * H).ravel()
            return self._signs * self._along(h).reshape(H.shape)
        left, right = self._basis
        image = left.T @ H
        core = image @ right
        even, odd = (core + core.T) / 2, (core - core.T) / 2
        s, w = self._before, self._after
        apart = s[:, None] - s
        tied = np.abs(apart) <= _TIED * s[0]
        ratio = np.where(tied, self._diagonal[:, None], (w[:, None] - w) / np.where(tied, 1, apart))
        total = s[:, None] + s
        turned = even * ratio + odd * (w[:, None] + w) / np.where(total > 0, total, 1.0)
        np.fill_diagonal(turned, self._along(np.diagonal(core)))
        result = left @ turned @ right.T
        shrunk = w / np.where(s > 0, s, 1.0)
        if len(left) > len(s):
            outside = H @ right - left @ core
            result += (outside * shrunk) @ right.T
        elif len(right) > len(s):
            outside = image - core @ right.T
            result += (left * shrunk) @ outside
        return result

    def _along(self, h: np.ndarray) -> np.ndarray:
        return self._diagonal * h + self._bump * (self._bump @ h)


def proximal_values(
    z: Float[np.ndarray, "r"], tau: float, p: float
) -> tuple[Float[np.ndarray, "r"], Float[np.ndarray, "r"], Float[np.ndarray, "r"]]:
    """The proximal point of non-negative z for ``tau ||.||_p``.

    Returns:
        The point w, and the D and v of the derivative ``diag(D) + v v^T``.
    """
    zero = np.zeros_like(z)
    if p == 1:
        return np.maximum(z - tau, 0.0), np.where(z > tau, 1.0, 0.0), zero
    if np.isinf(p):
        if z.sum() <= tau:
            return zero, zero, zero
        falling = np.sort(z)[::-1]
        levels = (np.cumsum(falling) - tau) / np.arange(1, len(z) + 1)
        level = levels[np.flatnonzero(falling > levels)[-1]]
        cut = z >= level
        return np.minimum(z, level), np.where(cut, 0.0, 1.0), cut / np.sqrt(cut.sum())
    q = p / (p - 1)
    scale = z.max(initial=0.0)
    if scale == 0 or scale * ((z / scale) ** q).sum() ** (1 / q) <= tau:
        return zero, zero, zero
    from scipy.optimize import brentq

    # With w = N s and ||s||_p = 1, stationarity is N s + tau s^(p-1) = z; ||s||_p falls with N.
    most = scale * ((z / scale) ** p).sum() ** (1 / p)

    def excess(norm: float) -> float:
        return float((_unit_values(z, tau, p, norm) ** p).sum() - 1)

    least = most * 1e-12
    norm = brentq(excess, least, most, xtol=1e-15 * most)
    assert isinstance(norm, float)
    s = _unit_values(z, tau, p, norm)
    with np.errstate(divide="ignore"):
        stiffness = 1 + tau * (p - 1) / norm * s ** (p - 2)
    b = np.sqrt(tau * (p - 1) / norm) * s ** (p - 1)
    rest = max(1 - float((b**2 / stiffness).sum()), np.finfo(np.float64).tiny)
    return norm * s, 1 / stiffness, b / stiffness / np.sqrt(rest)


def _unit_values(
    z: Float[np.ndarray, "r"], tau: float, p: float, norm: float
) -> Float[np.ndarray, "r"]:
    """The s with ``norm s + tau s^(p-1) = z``, by Newton's method from above."""
    if p >= 2:
        linear, bent, power = norm, tau, p - 1
    else:  # in terms of y = s^(p-1) the equation is convex
        linear, bent, power = tau, norm, 1 / (p - 1)
    y = np.minimum(z / linear, (z / bent) ** (1 / power))
    for _ in range(_NEWTON_STEPS):
        steep = bent * y ** (power - 1)
        slope = linear + power * steep
        y = np.maximum(y - (linear * y + steep * y - z) / slope, 0.0)
    return y if p >= 2 else y ** (1 / (p - 1))
