"""A primal-dual path in any norm, each of its steps measured in the scale that suits it.

Unknown are a pair (W, M) on the smoothed graph of the norm, multipliers and slacks. Newton's
method meets ``M = sum_j lambda_j a_j b_j^T`` and ``a_j^T W b_j = c_j + s_j`` while the products
``s_j lambda_j`` and the smoothing go to zero. Three things make it work where W is many orders of
magnitude larger than the bounds it meets. What a margin lacks is measured by how far W would have
to move for it, which is far less than it seems where constraints nearly contradict each other.
Systems are solved by orthogonal factors. And multipliers, which nearly cancel one another, are
carried as unevaluated sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.margin import extended
from attractor.margin.ill_conditioned.centering import longest_step
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.graph import Graph, Point
from attractor.margin.ill_conditioned.orthogonal_factor import OrthogonalFactor

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


@dataclass(frozen=True)
class Iterate:
    """Where a path stands.

    Attributes:
        Z: Stands for W and M.
        x: The multipliers, as an unevaluated sum.
        s: The slacks; zero for equalities.
    """

    Z: Float[np.ndarray, "d e"]
    x: extended.Pair
    s: Float[np.ndarray, "m"]


@dataclass(frozen=True)
class _View:
    """What an iterate leaves of the conditions.

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

    _gauge: OrthogonalFactor
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
            view = self._set_gauge()
            close = self._residual < max(min(_CLOSE, np.sqrt(self.area)), _SOLVED)
            if close:
                yield view.point, self._iterate
            last = self.area <= _LAST_AREA
            products = (self._iterate.x[0] * self._iterate.s)[inequality]
            sound = (products > _LEAST_PRODUCT * self._unit * self.area).all()
            if close and sound and not last:
                waiting = 0
                self.area = max(self.area * self._factor, _LAST_AREA)
                view = self._look(self._iterate)
                self._residual = self._measure(view)
            waiting += 1
            if waiting > (_LINGERING if last else _PATIENCE):
                return
            length = self._step(view)
            faster, slower = self._factor**1.5, self._factor**0.5
            well = length >= _WELL
            self._factor = max(faster, _FASTEST) if well else min(slower, _SLOWEST)

    def _look(self, iterate: Iterate) -> _View:
        point = self._graph.at(iterate.Z, self.area, self._residual)
        high, low = self._constraints.combine_exactly(iterate.x)
        goal = self._constraints.bounds + iterate.s
        return _View(point, (high - point.M) + low, self._constraints.shortfall(goal, point.W))

    def ratio(self) -> Float[np.ndarray, "m"]:
        """Slacks over multipliers, which falls where a constraint is tight; zero for equalities."""
        x = np.where(self._constraints.inequality, self._iterate.x[0], 1.0)
        return self._iterate.s / x

    def _set_gauge(self) -> _View:
        """What is left of the conditions, in units that suit the iterate."""
        view = self._look(self._iterate)
        W, M = (np.sqrt(np.sum(Z**2)) for Z in (view.point.W, view.point.M))
        rows = np.sqrt(W / M) * self._constraints.rows
        self._gauge, self._size = OrthogonalFactor.of(rows, self.ratio()), float(W * M)
        self._residual = self._measure(view)
        return view

    def _measure(self, view: _View) -> float:
        """How far W would have to move, slacks at their own cost, and M; relatively."""
        short = np.sum(self._gauge.half(view.short) ** 2) / self._size
        off = np.sum(view.off**2) / np.sum(view.point.M**2)
        return float(np.sqrt(short + off))

    def _step(self, view: _View) -> float:
        """Takes a step; returns its length."""
        constraints, iterate, point = self._constraints, self._iterate, view.point
        inequality, ratio = constraints.inequality, self.ratio()
        x = np.where(inequality, iterate.x[0], 1.0)
        center = np.where(inequality, self._unit * self.area / x - iterate.s, 0.0)
        moved = constraints.rows @ point.move(view.off).ravel()
        dx = OrthogonalFactor.of(point.root(), ratio).solve(view.short + center - moved)
        ds = np.where(inequality, center - ratio * dx, 0.0)
        dM = constraints.combine(dx) + view.off
        dZ = self._graph.coordinate(point.move(dM), dM)
        length = longest_step(inequality, (x, dx), (iterate.s, ds), _REACH)
        before, trials = self._residual, 0
        while True:
            trial = Iterate(
                iterate.Z + length * dZ,
                extended.add(iterate.x, length * dx, 0.0),
                iterate.s + length * ds,
            )
            after, trials = self._measure(self._look(trial)), trials + 1
            due = max(_ALWAYS, (1 - _DECREASE * length) * before)
            if after <= due or trials == _MOST_TRIALS:
                break
            length *= _SHORTER
        self._iterate, self._residual = trial, after
        return length
