"""Margin problems that are close to infeasible or badly scaled, in every norm but Frobenius.

Unknown are a pair (W, M) on the smoothed graph of the norm, multipliers and slacks. Newton's
method meets ``M = sum_j lambda_j a_j b_j^T`` and ``a_j^T W b_j = c_j + s_j`` while the products
``s_j lambda_j`` and the smoothing go to zero. Three things make it work where W is many orders of
magnitude larger than the bounds it meets. What a margin lacks is measured by how far W would have
to move for it, which is far less than it seems where constraints nearly contradict each other.
Systems are solved by orthogonal factors, and again for what is left, as what is large in a
residual hides what is small. And multipliers, which nearly cancel one another, are carried as
unevaluated sums, as are their steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius, Lp, Schatten
from attractor.margin.batching import extended
from attractor.margin.batching.reduction import reduce_to_spans
from attractor.margin.certificates.certificate import certify_scaled
from attractor.margin.ill_conditioned.central_path import (
    Graph,
    Point,
    PowerGraph,
    ThresholdGraph,
    centered,
    longest_step,
    times,
)
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.orthogonal_factor import OrthogonalFactor
from attractor.margin.ill_conditioned.rounding import exact_rows, round_together
from attractor.margin.methods import Candidates, Task, attempt, methods_for

_MOST_WORK = 2**28
"""Multiplications of an orthogonal factor: a fraction of a second, a hundred of them a path."""
_SHARE = 0.5
"""Sum of slacks times multipliers at area one, in units of the value."""
_ROUNDING = np.finfo(np.float64).eps
_TINY = 1e-4
"""Bounds that are tiny, beside the sizes of the numbers that make up a margin."""
_ROUNDS = 3
_LOST = 1e-12
"""Part of the sum of multipliers that may be lost to their rounding."""
FIRST_AREA = 0.2
_LAST_AREA = 1e-13
_MOST_STEPS, _LINGERING, _PATIENCE = 150, 6, 20
"""Steps in all, at the last area, and at any other area."""
_REACH = 0.95
_CLOSE, _SOLVED = 0.1, 1e-6
"""Residuals below which the area is reduced: at first, and however small the area is."""
_LEAST_PRODUCT = 1e-3
"""Products smaller than this, beside where they should be, have to grow first."""
_FASTEST, _FIRST, _SLOWEST = 0.05, 0.5, 0.7
"""Factors of the area at a step."""
_WELL = 0.8
"""Length of steps after which the area falls faster."""
_MOST_TRIALS, _SHORTER = 8, 0.4
_ALWAYS, _DECREASE = 0.03, 0.1
"""Residual at which any step will do, and share of the decrease promised that otherwise is due."""


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
    part = replace(part, W=start, multipliers=multipliers)
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
        ((_, reduced, (left,), (right,)),) = reduce_to_spans(task.scaled)
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
            gap, x = _certified(task, W, constraints, iterate.x)
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
    """The path, started at a centered point of the Frobenius problem."""
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

    Where bounds are tiny, what rounding takes from a margin is added to them: to scale W
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
        short = np.where(held, constraints.shortfall(goal, (W, np.zeros_like(W))), 0.0)
        W = W + constraints.combine(factor.solve(short))
    return W


def _certified(
    task: Task, W: Float[np.ndarray, "d e"], constraints: Constraints, multipliers: extended.Pair
) -> tuple[float, Float[np.ndarray, "m"]]:
    """The gap that is proved, and the multipliers it is proved with."""
    x = np.zeros_like(task.multipliers)
    M = constraints.combine_exactly(multipliers)[0]
    x[0, constraints.slots] = _rounded(constraints, multipliers, float(task.geometry.dual_norm(M)))
    return float(certify_scaled(task.scaled, W[None], x, task.geometry).gap[0]), x[0]


def _rounded(
    constraints: Constraints, multipliers: extended.Pair, size: float
) -> Float[np.ndarray, "n"]:
    """Multipliers over a size, together where each by itself loses much of their sum."""
    x = multipliers[0] / size
    M, kept = (constraints.combine_exactly(y)[0] for y in (multipliers, (x, np.zeros_like(x))))
    if np.abs(M - size * kept).max() <= _LOST * np.abs(M).max():
        return x
    pairs = zip(*(part.tolist() for part in multipliers), strict=True)
    exact = [(Fraction(high) + Fraction(low)) / Fraction(size) for high, low in pairs]
    return round_together(exact_rows(constraints.left, constraints.right), exact)


@dataclass(frozen=True)
class Iterate:
    """A point of the path.

    Attributes:
        Z: Coordinates of W and M on the graph.
        x: The multipliers, as an unevaluated sum.
        s: The slacks; zero for equalities.
    """

    Z: Float[np.ndarray, "d e"]
    x: extended.Pair
    s: Float[np.ndarray, "m"]


@dataclass(frozen=True)
class _Evaluation:
    """W, M and the residuals of the conditions at an iterate.

    Attributes:
        point: W and M.
        off: The combination of the constraints less M.
        short: ``c + s`` less the margins.
    """

    point: Point
    off: Float[np.ndarray, "d e"]
    short: Float[np.ndarray, "m"]


class InteriorPath:
    """The path of one instance.

    Attributes:
        area: Of the products of slacks and multipliers, and of the smoothing.
    """

    _metric: OrthogonalFactor
    _residual: float
    _size: float

    def __init__(self, constraints: Constraints, graph: Graph, start: Iterate) -> None:
        """Begins where the products of slacks and multipliers are those of the first area."""
        self._constraints, self._graph, self._iterate = constraints, graph, start
        self.area, self._factor, self._residual = FIRST_AREA, _FIRST, 1.0
        inequality = constraints.inequality
        products = (start.x[0] * start.s)[inequality]
        self._unit = float(products.mean()) / FIRST_AREA if products.size else 0.0

    def __iter__(self) -> Iterator[tuple[Point, Iterate]]:
        """Points at which the conditions are nearly met, the area being smaller each time."""
        inequality = self._constraints.inequality
        waiting = 0
        for _ in range(_MOST_STEPS):
            evaluation = self._update_metric()
            close = self._residual < max(min(_CLOSE, np.sqrt(self.area)), _SOLVED)
            if close:
                yield evaluation.point, self._iterate
            last = self.area <= _LAST_AREA
            products = (self._iterate.x[0] * self._iterate.s)[inequality]
            sound = (products > _LEAST_PRODUCT * self._unit * self.area).all()
            if close and sound and not last:
                waiting = 0
                self.area = max(self.area * self._factor, _LAST_AREA)
                evaluation = self._evaluate(self._iterate)
                self._residual = self._measure(evaluation)
            waiting += 1
            if waiting > (_LINGERING if last else _PATIENCE):
                return
            length = self._step(evaluation)
            faster, slower = self._factor**1.5, self._factor**0.5
            well = length >= _WELL
            self._factor = max(faster, _FASTEST) if well else min(slower, _SLOWEST)

    def _evaluate(self, iterate: Iterate) -> _Evaluation:
        point = self._graph.at(iterate.Z, self.area, self._residual)
        high, low = self._constraints.combine_exactly(iterate.x)
        goal = self._constraints.bounds + iterate.s
        return _Evaluation(
            point,
            (high - point.M) + low,
            self._constraints.shortfall(goal, (point.W, np.zeros_like(point.W))),
        )

    def ratio(self) -> Float[np.ndarray, "m"]:
        """Slacks over multipliers, which falls where a constraint is tight; zero for equalities."""
        x = np.where(self._constraints.inequality, self._iterate.x[0], 1.0)
        return self._iterate.s / x

    def _update_metric(self) -> _Evaluation:
        """Takes the metric of residuals from the iterate, and evaluates there."""
        evaluation = self._evaluate(self._iterate)
        W, M = (np.sqrt(np.sum(Z**2)) for Z in (evaluation.point.W, evaluation.point.M))
        rows = np.sqrt(W / M) * self._constraints.rows
        self._metric, self._size = OrthogonalFactor.of(rows, self.ratio()), float(W * M)
        self._residual = self._measure(evaluation)
        return evaluation

    def _measure(self, evaluation: _Evaluation) -> float:
        """Relative distance that W, slacks at their own cost, and M would have to move."""
        short = np.sum(self._metric.half(evaluation.short) ** 2) / self._size
        off = np.sum(evaluation.off**2) / np.sum(evaluation.point.M**2)
        return float(np.sqrt(short + off))

    def _step(self, evaluation: _Evaluation) -> float:
        """Takes a step; returns its length."""
        constraints, iterate, point = self._constraints, self._iterate, evaluation.point
        inequality, ratio = constraints.inequality, self.ratio()
        x = np.where(inequality, iterate.x[0], 1.0)
        center = np.where(inequality, self._unit * self.area / x - iterate.s, 0.0)
        # ds and dM eliminated: a system in the multipliers, solved by its orthogonal factor.
        moved = constraints.rows @ point.move(evaluation.off).ravel()
        goal = evaluation.short + center - moved
        dx = self._solve(OrthogonalFactor.of(point.root(), ratio), point, goal)
        ds = np.where(inequality, center - ratio * dx[0], 0.0)
        dM = constraints.combine_exactly(dx)[0] + evaluation.off
        dZ = self._graph.coordinate(point.move(dM), dM)
        length = longest_step(inequality, (x, dx[0]), (iterate.s, ds), _REACH)
        # Shortened until the residual, in the metric of the old iterate, falls enough.
        before, trials = self._residual, 0
        while True:
            trial = Iterate(
                iterate.Z + length * dZ,
                extended.add(iterate.x, *times(length, dx)),
                iterate.s + length * ds,
            )
            after, trials = self._measure(self._evaluate(trial)), trials + 1
            due = max(_ALWAYS, (1 - _DECREASE * length) * before)
            if after <= due or trials == _MOST_TRIALS:
                break
            length *= _SHORTER
        self._iterate, self._residual = trial, after
        return length

    def _solve(
        self, factor: OrthogonalFactor, point: Point, goal: Float[np.ndarray, "m"]
    ) -> extended.Pair:
        """Changes of multipliers that change margins and slacks by a goal, refined.

        They nearly cancel one another, as the multipliers do, and are carried as they are.
        """
        ratio, zero = self.ratio(), np.zeros_like(goal)
        dx, rest = (zero, zero), goal
        for _ in range(_ROUNDS):
            dx = extended.add(dx, factor.solve(rest), 0.0)
            dM = self._constraints.combine_exactly(dx)[0]
            rest = goal - self._constraints.rows @ point.move(dM).ravel() - ratio * dx[0]
        return dx
