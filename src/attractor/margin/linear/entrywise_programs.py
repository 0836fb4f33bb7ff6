"""Margin problems in the norms l_1 and l_inf as linear programs, and interior points of them.

With the constraints as rows F of ``d e`` numbers, ``s = F w - c`` and ``y = F^T lambda``,

    l_1:    w = u - v,          -1 <= y <= 1         u (1 - y) = 0,   v (1 + y) = 0,   s lambda = 0
    l_inf:  -t <= w <= t,       y = p - q,           (t - w) p = 0,   (t + w) q = 0,   s lambda = 0
                                sum(p + q) = 1

make w and lambda optimal: nonnegative numbers in pairs whose products vanish. Eliminating all
other unknowns leaves a system for the multipliers, with the matrix
``F diag(weights) F^T + diag(s / lambda)`` in both norms; in l_inf, t adds one of rank one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.linear.interior_points import EntrywiseProgram, or_one


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
        room = 0.3 * np.abs(w).mean(-1, keepdims=True)
        scale = 0.9 / or_one(np.abs(combined).max(-1, keepdims=True))
        y = scale * combined
        entries = np.hstack([np.maximum(w, 0.0) + room, np.maximum(-w, 0.0) + room])
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
        room = 0.2 * or_one(np.abs(combined).mean(-1, keepdims=True))
        pq = np.hstack([np.maximum(combined, 0.0) + room, np.maximum(-combined, 0.0) + room])
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
