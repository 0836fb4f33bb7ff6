"""Margin problems that are close to infeasible or badly scaled, in every norm but Frobenius."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Frobenius, Lp, Schatten
from attractor.margin.certificate import certify_scaled
from attractor.margin.ill_conditioned.centering import centered
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.graph import Graph, PowerGraph, ThresholdGraph
from attractor.margin.ill_conditioned.interior_path import FIRST_AREA, InteriorPath, Iterate
from attractor.margin.ill_conditioned.orthogonal_factor import OrthogonalFactor
from attractor.margin.methods import Candidates, Task, attempt, methods_for
from attractor.margin.reduction import reduce_to_spans

_MOST_WORK = 2**28
"""Multiplications of an orthogonal factor: a fraction of a second, a hundred of them a path."""
_SHARE = 0.5
"""What slacks times multipliers add up to at area one, in units of the value."""
_ROUNDING = np.finfo(np.float64).eps
_TINY = 1e-4
"""Bounds that are tiny, beside the sizes of the numbers that make up a margin."""
_ROUNDS = 3


def solve_ill_conditioned(task: Task) -> Candidates:
    """Candidates for an ``Lp`` or ``Schatten`` geometry, one instance at a time.

    Far slower than the other methods, and accurate to the rounding of W where they break down.
    """
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    known = task.warm_started
    if not known.size:
        return W, x
    part = task.choose(known)
    start, multipliers, *_ = attempt(part.scaled, Frobenius(), methods_for(Frobenius()), 1e-9)
    part = replace(
        part,
        W=part.scaled.scale_matrix(start),
        multipliers=part.scaled.scale_multipliers(multipliers),
    )
    with np.errstate(all="ignore"):  # what breaks down is not finite, and given up
        for place, i in enumerate(known):
            W[i], x[i] = _solve(part.choose([place]))
    return W, x


def _solve(task: Task) -> tuple[Float[np.ndarray, "d e"], Float[np.ndarray, "m"]]:
    """Candidates for a task of one instance, from its Frobenius solution."""
    geometry, (W,) = task.geometry, task.W
    assert isinstance(geometry, (Lp, Schatten))
    unit = float(geometry.norm(W))
    constraints = inner = Constraints.of(task.scaled, 0, unit)
    left, right = (np.eye(size) for size in W.shape)
    m = len(constraints.slots)
    if geometry.unitarily_invariant and m < max(W.shape):
        reduced, (left,), (right,) = reduce_to_spans(task.scaled)
        inner = Constraints.of(reduced, 0, unit)
    found = np.full(W.shape, np.nan), np.zeros(task.multipliers.shape[-1])
    if m**2 * (left.shape[1] * right.shape[1] + 2 * m) > _MOST_WORK:
        return found
    keep, least = inner.without_repetition(), np.inf
    multipliers = _gathered(inner, task.multipliers[0, inner.slots], keep)
    constraints, inner = constraints.choose(keep), inner.choose(keep)
    try:
        path = _path(geometry, inner, left.T @ (W / unit) @ right, multipliers)
        initial = path.ratio()
        for point, iterate in path:
            held = ~constraints.inequality | (path.ratio() < initial)
            W = unit * _corrected(constraints, inner, left @ point.W @ right.T, held)
            gap, x = _certified(task, W, constraints.slots, iterate.x[0])
            if gap < least:
                least, found = gap, (W, x)
            if least <= task.tolerance / 2:
                break
    except np.linalg.LinAlgError:
        pass  # what was found before it broke down is kept
    return found


def _gathered(
    constraints: Constraints, multipliers: Float[np.ndarray, "m"], keep: Bool[np.ndarray, "m"]
) -> Float[np.ndarray, "n"]:
    """Multipliers of the constraints to keep that make up for those of the others."""
    result = multipliers[keep]
    if not keep.all():
        free = ~constraints.inequality[keep]
        left_out = constraints.rows[~keep].T @ multipliers[~keep]
        result[free] += np.linalg.lstsq(constraints.rows[keep][free].T, left_out, rcond=None)[0]
    return result


def _path(
    geometry: Lp | Schatten,
    constraints: Constraints,
    W: Float[np.ndarray, "p q"],
    multipliers: Float[np.ndarray, "m"],
) -> InteriorPath:
    """The path, begun at a centered point of the Frobenius problem."""
    M = constraints.combine(multipliers)
    multipliers = multipliers * np.sqrt(np.sum(W**2) / np.sum(M**2))
    x, s = centered(constraints, W, multipliers, _SHARE * FIRST_AREA)
    W = M = constraints.combine_exactly(x)[0]
    graph: Graph = (
        ThresholdGraph(geometry, constraints, W)
        if geometry.p in (1, np.inf)
        else PowerGraph(geometry, constraints)
    )
    goal = float(geometry.norm(W)) if graph.dual_norm is None else graph.dual_norm
    size = float(geometry.dual_norm(M)) / goal
    return InteriorPath(
        constraints, graph, Iterate(graph.coordinate(W, M / size), (x[0] / size, x[1] / size), s)
    )


def _corrected(
    constraints: Constraints,
    inner: Constraints,
    W: Float[np.ndarray, "d e"],
    held: Bool[np.ndarray, "m"],
) -> Float[np.ndarray, "d e"]:
    """W, moved by the least norm that makes it meet the held constraints.

    Where bounds are tiny, what rounding takes from a margin is asked for beforehand: to scale W
    up until the bound is met would cost far more.

    Args:
        constraints: The constraints.
        inner: The same in coordinates that are fewer.
        W: The matrix.
        held: Constraints to be met with equality.
    """
    left, right = np.abs(constraints.left), np.abs(constraints.right)
    sizes = np.einsum("md,de,me->m", left, np.abs(W), right)
    tiny = constraints.inequality & (np.abs(constraints.bounds) < _TINY * sizes)
    goal = constraints.bounds + np.where(tiny, _ROUNDING * sizes, 0.0)
    rows = np.where(held[:, None], inner.rows, 0.0)
    factor = OrthogonalFactor.of(rows, np.where(held, 0.0, 1.0))
    for _ in range(_ROUNDS):
        short = np.where(held, constraints.shortfall(goal, W), 0.0)
        W = W + constraints.combine(factor.solve(short))
    return W


def _certified(
    task: Task,
    W: Float[np.ndarray, "d e"],
    slots: Int[np.ndarray, "n"],
    multipliers: Float[np.ndarray, "n"],
) -> tuple[float, Float[np.ndarray, "m"]]:
    """The gap that is proved, and the multipliers it is proved with."""
    scaled = task.scaled
    x = np.zeros_like(task.multipliers)
    x[0, slots] = multipliers
    x /= task.geometry.dual_norm(scaled.combine(x))[:, None]
    restored = scaled.restore_matrix(W[None]), scaled.restore_multipliers(x)
    return float(certify_scaled(scaled, *restored, task.geometry).gap[0]), x[0]
