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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry
from attractor.margin.large.conjugate_gradients import conjugate_gradients
from attractor.margin.large.instance import LargeInstance, Report
from attractor.margin.large.proximal_points import ProximalPoint, proximal_point
from attractor.margin.methods import Candidates, Task

_FIRST_TAU, _GROWTH = 0.3, 2.0
"""Of tau, in units of the dual norm of the Frobenius solution, and its factor a stage."""
_DELTA = 1e-2, 0.3, 1e-9
_DELTA_OF_FEW = 1e-4, 0.1, 1e-14
"""Delta of the first stage, in units of tau, its factor a stage, and its end; the same where
Newton's system is solved directly, and may be close to singular."""
_RETREAT = 10.0
"""Divisor of tau after a stage that did not converge."""
_STAGES, _STALLED = 80, 14
_STEPS, _HALVINGS = 40, 12
_CLOSENESS = 0.1
"""Residual of a stage, in units of how far it moved, at which it is done."""
_REDUCTION, _MOST_PRODUCTS = 0.05, 400
_FIRST_DAMPING, _EASING = 0.1, 10.0
"""Inverse of the longest step, in units of the multipliers, and its divisor after an ascent."""
_ASCENT, _NOISE = 1e-4, 1e-14
"""Least share of the ascent promised to first order; share of the height that is rounding."""
_FEW = 2000
"""Constraints up to which Newton's system is solved directly, as far as these many entries of
constraints written out as matrices allow."""
_MOST_ENTRIES = 2**22


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
    share, fall, last = _DELTA_OF_FEW if len(x) <= _FEW else _DELTA
    tau, growth = _FIRST_TAU * float(geometry.dual_norm(W)), _GROWTH
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
            tau, share = growth * tau, max(fall * share, last)
        else:  # the stage was too long
            tau, share, growth = tau / _RETREAT, _RETREAT * share, np.sqrt(growth)
    return instance.scaled_to_meet(best_W), best_x


def _solve_stage(
    instance: LargeInstance, center: _Center, geometry: Geometry
) -> tuple[_Iterate, bool]:
    """One stage, as closely as it pays, and whether its end was reached."""
    inequality, delta = instance.inequality, center.delta
    iterate = _evaluate(instance, center, geometry, center.x)
    damping = _FIRST_DAMPING
    for step in range(_STEPS):
        u, h = iterate.u, iterate.gradient
        ahead = u + h / delta
        residual = delta * (u - np.where(inequality, np.maximum(ahead, 0.0), ahead))
        moved = delta * np.sqrt(((u - center.x) ** 2).sum())
        rounding = _NOISE * np.sqrt(len(u)) * (1 + np.sqrt((iterate.point.W**2).sum()))
        if step and len(u) <= _FEW:  # W is what is left of as much
            rounding += 4 * np.finfo(np.float64).eps * center.tau * np.sqrt((u**2).sum())
        if np.sqrt(residual @ residual) <= max(_CLOSENESS * moved if step else 0.0, rounding):
            return iterate, True
        # As far as the multipliers are large, but for this factor, a singular system may lead.
        size = damping * math.sqrt(float(residual @ residual) / max(float(u @ u), _NOISE))
        direction = _newton_direction(instance, center, iterate, size)
        trial = _search(instance, center, geometry, iterate, direction)
        if len(u) > _FEW or trial.height >= iterate.height - _NOISE * abs(iterate.height):
            iterate, damping = trial, damping / _EASING
        else:
            damping *= _EASING**2
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
    point = proximal_point(Z, tau, geometry)
    margins = instance.constraints.margins(point.W)
    moved = u - center.x
    height = instance.bounds @ u - delta / 2 * (moved @ moved) + point.norm
    height += ((point.W - Z) ** 2).sum() / (2 * tau) - (Z**2).sum() / (2 * tau)
    gradient = instance.bounds - margins - delta * moved
    return _Iterate(u, point, margins, float(height), gradient)


def _newton_direction(
    instance: LargeInstance, center: _Center, iterate: _Iterate, damping: float
) -> Float[np.ndarray, "m"]:
    """Newton's direction on the constraints that are short or carry a multiplier.

    Few constraints have a damped one: the norm may leave them no way to move W at all.
    """
    u, h, tau = iterate.u, iterate.gradient, center.tau
    free = ~instance.inequality | (u > 0) | (h > 0)
    chosen = instance.constraints.choose(free)
    direction = np.zeros_like(u)
    d, e = iterate.point.W.shape
    if len(u) <= _FEW and len(chosen.left) * d * e <= _MOST_ENTRIES:
        right = np.repeat(chosen.right, np.diff(chosen.starts), axis=0)
        rows = chosen.left[:, :, None] * right[:, None]
        moved = iterate.point.derivative(rows)
        system = tau * rows.reshape(len(rows), -1) @ moved.reshape(len(rows), -1).T
        system += (center.delta + damping) * np.eye(len(rows))
        direction[free] = np.linalg.solve(system, h[free])
        return direction

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
    direction[free] = found
    return direction
