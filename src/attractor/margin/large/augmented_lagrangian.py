"""The Frobenius margin problem of many constraints: an augmented Lagrangian, solved by pivoting.

With multipliers x of before and a weight delta, each stage solves

    min 1/2 ||W||^2 + 1/(2 delta) sum_j max(0, c_j + delta x_j - a_j^T W b_j)^2,

without the max on equalities. Its solution is ``W = sum_j u_j a_j b_j^T`` with
``(G_SS + delta I) u_S = (c + delta x)_S`` for the set S of constraints that are short, which is
found by exchanging every constraint on the wrong side (Judice and Pires 1994), or, where that
does not settle, by Newton steps with an exact line search. Then x becomes u and delta falls.

A large delta makes the first systems easy, whatever the rank of the constraints, and its
multipliers are close to those of the next stage; the error falls by about delta over the smallest
eigenvalue of G_SS a stage. Where the constraints contradict each other, u grows without bound in
the direction of Farkas multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.large.conjugate_gradients import FreeSystem
from attractor.margin.large.instance import LargeInstance, Report
from attractor.margin.methods import Candidates, Task

_FIRST_DELTA = 1.0
_STAGES = 60
_EXCHANGES = 40
_PATIENCE = 3
_SETTLED = 0.005
"""Share of free constraints on the wrong side below which a stage is done."""
_STALLED = 8
"""Stages at the last delta, without a better gap, after which no more are tried."""
_SUSPICIOUS = 1e-3
"""Norm of W, relative to its multipliers, below which a contradiction is looked for."""
_VANISHED = 1e-13
"""Norm of the sum, relative to the multipliers, that is rounding."""
_ROUNDS = 12


@dataclass(frozen=True)
class StageSettings:
    """Schedule of delta, and accuracy of a stage.

    Attributes:
        fall: Factor of delta a stage.
        last_delta: The last delta.
        reduction: Residual of a linear solve, relative to its first.
    """

    fall: float
    last_delta: float
    reduction: float


AGGRESSIVE = StageSettings(fall=0.2, last_delta=1e-12, reduction=1e-3)
CONSERVATIVE = StageSettings(fall=0.5, last_delta=1e-12, reduction=1e-6)


@dataclass
class _Stage:
    """Iterate of an augmented Lagrangian.

    Attributes:
        u: Coefficients of W.
        y: Margins of W.
        free: Constraints taken to be short.
        wrong: Number of constraints on the wrong side.
    """

    u: Float[np.ndarray, "m"]
    y: Float[np.ndarray, "m"]
    free: Bool[np.ndarray, "m"]
    wrong: int


def solve_by_augmented_lagrangian(
    task: Task, settings: StageSettings, report: Report
) -> Candidates:
    """Candidates for one instance with many constraints.

    Args:
        task: A batch of one instance.
        settings: Schedule of delta, and accuracy of a stage.
        report: Callback, called at the end of every stage.
    """
    scaled = task.scaled
    _, m, d = scaled.left.shape
    W, multipliers = np.full((1, d, scaled.right.shape[-1]), np.nan), np.zeros((1, m))
    impossible = np.flatnonzero(scaled.impossible[0])[:1]
    if impossible.size:
        multipliers[0, impossible] = np.sign(scaled.bounds[0, impossible])
        return W, multipliers
    instance = LargeInstance.of(scaled)
    u, feasible = _minimize(instance, task.tolerance, settings, report)
    if feasible:
        settled = instance.settle(instance.constraints.combine(u), u)
        W[0] = instance.scaled_to_meet(settled)
    size = float(task.geometry.dual_norm(instance.constraints.combine(u)))
    multipliers[0, instance.slots] = u / (size if feasible and size > 0 else 1.0)
    return W, multipliers


def _minimize(
    instance: LargeInstance, tolerance: float, settings: StageSettings, report: Report
) -> tuple[Float[np.ndarray, "m"], bool]:
    """Multipliers, and whether they make a W; otherwise they are Farkas multipliers or a bound."""
    m = len(instance.bounds)
    x, delta = np.zeros(m), _FIRST_DELTA
    stage = _Stage(x, x, np.ones(m, dtype=bool), m)
    best, best_gap, stalled, vanishing = x, np.inf, 0, _SUSPICIOUS
    for number in range(_STAGES):
        stage = _solve_stage(instance, x, delta, stage, settings)
        x = np.where(instance.inequality, np.maximum(stage.u, 0.0), stage.u)
        gap = _gap(instance, x)
        report(number + 1, gap)
        stalled = 0 if gap < best_gap / 2 or delta > settings.last_delta else stalled + 1
        if gap < best_gap:
            best, best_gap = x, gap
        if gap <= tolerance / 4 and not stage.wrong:
            break
        residual = instance.farkas_residual(x)
        if np.isinf(best_gap) and residual < vanishing:
            farkas = contradiction(instance, x)
            if farkas is not None:
                return farkas, False
            vanishing = residual / 10
        if stalled >= _STALLED:
            break
        delta = max(settings.fall * delta, settings.last_delta)
    return (best, True) if np.isfinite(best_gap) else (x, False)


def _gap(instance: LargeInstance, x: Float[np.ndarray, "m"]) -> float:
    """Relative duality gap of x and the W it makes; infinite where no multiple of that will do."""
    combined = instance.constraints.combine(x)
    W, size = instance.settle(combined, x), float(np.sqrt((combined**2).sum()))
    norm, margins = float(np.sqrt((W**2).sum())), instance.constraints.margins(W)
    upper, lower = instance.bounds_from(norm, x / (size if size > 0 else 1.0), margins)
    return (upper - lower) / upper if 0 < upper < np.inf else upper


def _solve_stage(
    instance: LargeInstance,
    x: Float[np.ndarray, "m"],
    delta: float,
    start: _Stage,
    settings: StageSettings,
) -> _Stage:
    """One stage, as closely as it pays."""
    held = ~instance.inequality
    u, y, free = start.u, start.y, start.free | held
    fewest, patience, wrong_count = len(x) + 1, _PATIENCE, 0
    target = instance.bounds + delta * x
    for _ in range(_EXCHANGES):
        system = FreeSystem(instance.constraints, free, delta)
        s, noise = system.solve(target, u, reduction=settings.reduction)
        image = instance.constraints.gram_times(s)
        noise += np.finfo(np.float64).eps * np.abs(s).max(initial=0.0)
        wrong = instance.inequality & ((free & (s < 0)) | (~free & (target - image > noise)))
        wrong_count = int(wrong.sum())
        # All on the wrong side are exchanged while their number falls; then Newton steps take over.
        patience = _PATIENCE if wrong_count < fewest else patience - 1
        fewest = min(fewest, wrong_count)
        if patience >= 0:
            u, y, free = s, image, free ^ wrong
        else:
            step = _line_search(instance.inequality, target, delta, u, y, s - u, image - y)
            u, y = u + step * (s - u), y + step * (image - y)
            free = held | (target - y > 0)
        if wrong_count <= _SETTLED * np.count_nonzero(free):
            break
    return _Stage(u, y, free, wrong_count)


def _line_search(
    inequality: Bool[np.ndarray, "m"],
    target: Float[np.ndarray, "m"],
    delta: float,
    u: Float[np.ndarray, "m"],
    y: Float[np.ndarray, "m"],
    du: Float[np.ndarray, "m"],
    dy: Float[np.ndarray, "m"],
) -> float:
    """The step in [0, 1] that minimizes the augmented Lagrangian along a direction."""

    def slope(step: float) -> float:
        short = target - y - step * dy
        short = np.where(inequality, np.maximum(short, 0.0), short)
        return float(du @ y + step * (du @ dy) - (short @ dy) / delta)

    low, high = 0.0, 1.0
    if slope(high) <= 0:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return low


def contradiction(
    instance: LargeInstance, x: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"] | None:
    """Multipliers that combine the constraints to zero and the bounds to more, close to x.

    What is left of ``sum x_j a_j b_j^T`` is taken out by the smallest change of the multipliers
    that are not zero. One that the change makes negative is left out of the next round.
    """
    x = x / np.abs(x).max()
    free = np.asarray(~instance.inequality | (x > 0))
    system = FreeSystem(instance.constraints, free, 0.0)
    for _ in range(_ROUNDS):
        image = instance.constraints.gram_times(x)
        change, _ = system.solve(image, np.zeros_like(x), reduction=1e-8)
        x = x - change
        negative = instance.inequality & (x < 0)
        if negative.any():
            x = np.where(negative, 0.0, x)
            free = free & ~negative
            system = FreeSystem(instance.constraints, free, 0.0)
        elif instance.farkas_residual(x) < _VANISHED:
            return x
    return None
