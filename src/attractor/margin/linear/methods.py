"""The margin problems of the norms l_1 and l_inf, solved as linear programs in batches.

With the constraints as rows F of ``d e`` numbers, ``s = F w - c`` and ``y = F^T lambda``,

    l_1:    w = u - v,          -1 <= y <= 1         u (1 - y) = 0,   v (1 + y) = 0,   s lambda = 0
    l_inf:  -t <= w <= t,       y = p - q,           (t - w) p = 0,   (t + w) q = 0,   s lambda = 0
                                sum(p + q) = 1

make w and lambda optimal: nonnegative numbers in pairs whose products vanish. Eliminating all
other unknowns leaves a system for the multipliers, with the matrix
``F diag(weights) F^T + diag(s / lambda)`` in both norms; in l_inf, t adds one of rank one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Lp
from attractor.margin.batching.iterates import BestIterates
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.correction import meet_constraints
from attractor.margin.linear.interior_points import EntrywiseProgram, or_one
from attractor.margin.linear.normal_equations import Factor, factor_gram, factor_orthogonally
from attractor.margin.linear.vertices import nearest_on_face, nearest_vertex, separation
from attractor.margin.methods import Candidates, Task

_MOST_STEPS = 60
_HINTING, _APART = 1e-2, 2.0
"""Gap below which vertices are looked for where the unknowns of one stand apart by the ratio."""
_TELLING = 1e-4
"""Gap below which vertices are looked for whether they stand apart or not."""
_CONVERGED = 1e-6
"""Gap below which there should be a vertex; where there is none, solutions are not unique."""
_PATIENCE = 5
"""Steps without a smaller gap after which rounding has the last word."""
_EXHAUSTED = 1e-13
"""Gap below which further steps change nothing but rounding."""


def solve_by_linear_programming(task: Task) -> Candidates:
    """Solves in l_1 or l_inf by an interior-point method that ends at exact solutions.

    Args:
        task: Its geometry is ``Lp(1)`` or ``Lp(inf)``, its W a matrix to start from.
    """
    return _solve(task, factor_gram)


def solve_by_conservative_linear_programming(task: Task) -> Candidates:
    """The same with more accurate steps, for problems that are close to infeasible."""
    return _solve(task, factor_orthogonally)


def _solve(task: Task, factor: Factor) -> Candidates:
    """Steps to the solutions with the given factors of every system."""
    count, d, e = task.W.shape
    best = BestIterates(count, (d, e), task.multipliers.shape[-1])
    places = task.warm_started
    if not places.size:
        return best.W, best.multipliers
    with np.errstate(all="ignore"):  # an instance that breaks down leaves the batch as NaN
        program = program_of(task.choose(places), factor)
        least, since = np.full(count, np.inf), np.zeros(count, dtype=int)
        for step in range(1, _MOST_STEPS + 1):
            program.advance()
            _offer_solutions(task, program, places, best)
            gap = program.gap
            since[places] = np.where(gap < least[places], 0, since[places] + 1)
            least[places] = np.fmin(gap, least[places])
            open_ = best.gap[places] > task.tolerance / 2
            active = open_ & (since[places] < _PATIENCE) & (gap > _EXHAUSTED)
            active &= step < _MOST_STEPS
            _offer(task, program, places, best, open_ & ~active, _points)
            if not active.all():
                places, program = places[active], program.choose(active)
            if not places.size:
                break
    return best.W, best.multipliers


def program_of(task: Task, factor: Factor = factor_gram) -> EntrywiseProgram:
    """The linear programs of a task, started near its matrices."""
    scaled, count = task.scaled, len(task.W)
    present = scaled.nonzero
    kinds: dict[float, type[EntrywiseProgram]] = {1.0: SumOfEntries, math.inf: LargestEntry}
    assert isinstance(task.geometry, Lp)
    return kinds[task.geometry.p](
        np.where(present[..., None], rows_of(scaled), 0.0),
        np.where(present, scaled.bounds, 0.0),
        scaled.inequality & present,
        present,
        task.W.reshape(count, -1),
        task.multipliers,
        factor,
    )


def rows_of(scaled: ScaledConstraints) -> Float[np.ndarray, "k m D"]:
    """The constraints as rows of ``d e`` numbers."""
    k, m, _ = scaled.left.shape
    return (scaled.left[..., :, None] * scaled.right[..., None, :]).reshape(k, m, -1)


def _offer_solutions(
    task: Task, program: EntrywiseProgram, places: Int[np.ndarray, "k"], best: BestIterates
) -> None:
    """Offers the solutions that the interior points hint at; near the end also the points."""
    gap = program.gap
    near = gap < _HINTING
    apart = np.zeros_like(near)
    apart[near] = separation(program.choose(near)) > _APART
    _offer(task, program, places, best, apart | (gap < _TELLING), nearest_vertex)
    open_ = best.gap[places] > task.tolerance / 2
    face = open_ & (gap < np.where(apart, _CONVERGED, _TELLING))
    _offer(task, program, places, best, face, nearest_on_face)
    open_ = best.gap[places] > task.tolerance / 2
    ending = open_ & (gap < max(_CONVERGED, task.tolerance / 2))
    _offer(task, program, places, best, ending, _points)


def _offer(
    task: Task,
    program: EntrywiseProgram,
    places: Int[np.ndarray, "k"],
    best: BestIterates,
    chosen: Bool[np.ndarray, "k"],
    find: Callable[[EntrywiseProgram], tuple[np.ndarray, np.ndarray]],
) -> None:
    """Offers what is found for the chosen instances."""
    if chosen.any():
        w, multipliers = find(program.choose(chosen))
        scaled = task.scaled.choose(places[chosen])
        W = meet_constraints(scaled, w.reshape(-1, *task.W.shape[1:]))
        best.offer(places[chosen], scaled, W, multipliers, task.geometry)


def _points(program: EntrywiseProgram) -> tuple[np.ndarray, np.ndarray]:
    """The interior points themselves."""
    return program.w, program.multipliers


class SumOfEntries(EntrywiseProgram):
    """The norm l_1."""

    border_size = 0

    @property
    def w(self) -> Float[np.ndarray, "k D"]:
        """``u - v``."""
        u, v = self._halves(self.primal)
        return u - v

    def entry_ratios(self) -> Float[np.ndarray, "k D"]:
        """An entry with its sign lies between zero and infinity."""
        return np.maximum(*self._halves(self.primal / self.dual))

    def signs(self) -> Float[np.ndarray, "k D"]:
        """Which of u and v is larger."""
        u, v = self._halves(self.primal)
        return np.where(u > v, 1.0, -1.0)

    def costs(self, signs: Float[np.ndarray, "k D"]) -> Float[np.ndarray, "k D"]:
        """As much as the entry."""
        return signs

    def border(
        self, bounded: Bool[np.ndarray, "k D"], signs: Float[np.ndarray, "k D"]
    ) -> Float[np.ndarray, "k border D"]:
        """There are none: entries at their bounds are zero."""
        return np.zeros((len(bounded), 0, bounded.shape[-1]))

    def _begin(self, w: Any, combined: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shift = 0.3 * np.abs(w).mean(-1, keepdims=True)
        scale = 0.9 / or_one(np.abs(combined).max(-1, keepdims=True))
        y = scale * combined
        entries = np.hstack([np.maximum(w, 0.0) + shift, np.maximum(-w, 0.0) + shift])
        return entries, np.hstack([1 - y, 1 + y]), scale

    def _weigh(self) -> tuple[list[np.ndarray], tuple[np.ndarray, ...]]:
        first, second = self._halves(self._ratios)
        return [self.rows * np.sqrt(first + second)[:, None, :]], ()

    def _direction(self, change: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        quotient = change / self.dual
        first, second = self._halves(quotient)
        dlambda = self._solve(self._unmet - self.margins(first - second) + self._slacks(quotient))
        dy = self.combine(dlambda)
        dz = np.hstack([-dy, dy, np.where(self.inequality, dlambda, 0.0)])
        return quotient - self._ratios * dz, dz, dlambda


class LargestEntry(EntrywiseProgram):
    """The norm l_inf."""

    border_size = 1

    @property
    def w(self) -> Float[np.ndarray, "k D"]:
        """Half the difference of its distances from -t and t."""
        below, above = self._halves(self.primal)
        return (above - below) / 2

    def entry_ratios(self) -> Float[np.ndarray, "k D"]:
        """An entry lies between -t and t."""
        return np.minimum(*self._halves(self.primal / self.dual))

    def signs(self) -> Float[np.ndarray, "k D"]:
        """Which bound is nearer."""
        below, above = self._halves(self.primal)
        return np.where(below < above, 1.0, -1.0)

    def costs(self, signs: Float[np.ndarray, "k D"]) -> Float[np.ndarray, "k D"]:
        """Nothing."""
        return np.zeros_like(signs)

    def border(
        self, bounded: Bool[np.ndarray, "k D"], signs: Float[np.ndarray, "k D"]
    ) -> Float[np.ndarray, "k border D"]:
        """Entries at their bounds are t or -t."""
        return np.where(bounded, signs, 0.0)[:, None, :]

    def _begin(self, w: Any, combined: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        t = 1.2 * np.abs(w).max(-1, keepdims=True)
        shift = 0.2 * or_one(np.abs(combined).mean(-1, keepdims=True))
        pq = np.hstack([np.maximum(combined, 0.0) + shift, np.maximum(-combined, 0.0) + shift])
        scale = 1 / pq.sum(-1, keepdims=True)
        return np.hstack([t - w, t + w]), scale * pq, scale

    def _weigh(self) -> tuple[list[np.ndarray], tuple[np.ndarray, ...]]:
        first, second = self._halves(self._ratios)
        total = first + second
        lean = (second - first) / total
        border = self.margins(lean)
        corner = (4 / total).sum(-1, keepdims=True)
        weights = first * (second / total)
        half = self.rows * np.sqrt(weights)[:, None, :]
        blocks = [half, (border / np.sqrt(corner))[:, :, None]]
        return blocks, (weights, lean, border, corner)

    def _direction(self, change: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weights, lean, border, corner = self._parts
        slack_change = self._slacks(change) / self._slacks(self.dual)
        first, second = self._halves(change / self.primal)
        difference = first - second
        eta = (first + second - lean * difference).sum(-1, keepdims=True)
        dlambda = self._solve(
            self._unmet
            + self.margins(weights * difference)
            + slack_change
            - border * (eta / corner)
        )
        dy = self.combine(dlambda)
        dt = (eta + (lean * dy).sum(-1, keepdims=True)) / corner
        dw = weights * (dy - difference) + lean * dt
        free = np.where(self.inequality, dlambda, 0.0)
        dx = np.hstack([dt - dw, dt + dw, slack_change - self._slacks(self._ratios) * free])
        ratios = self._halves(self._ratios)
        dz = np.hstack([first - (dt - dw) / ratios[0], second - (dt + dw) / ratios[1], free])
        return dx, dz, dlambda
