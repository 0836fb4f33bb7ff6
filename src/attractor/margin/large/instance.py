"""One margin problem of many constraints, and how good multipliers are for it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.large.conjugate_gradients import FreeSystem
from attractor.margin.large.groups import GroupedConstraints

Report: TypeAlias = Callable[[int, float], None]
"""Callback: called with the number of a stage and the relative duality gap at its end."""

_ROUNDS = 5
_LOOSE = 1e-12
"""Shortfall, in units of W, above which a W that scaling cannot cure is none."""


@dataclass(frozen=True)
class LargeInstance:
    """One scaled instance, without absent slots and constraints that are zero.

    Attributes:
        constraints: The ``a_j b_j^T``.
        bounds: The c.
        inequality: False for equalities.
        slots: Slot of each constraint in the batch.
        curable: Constraints that hold once W is scaled up enough: inequalities with c > 0, where
            every other bound is zero, so that scaling leaves the rest as it is.
    """

    constraints: GroupedConstraints
    bounds: Float[np.ndarray, "m"]
    inequality: Bool[np.ndarray, "m"]
    slots: Any
    curable: Bool[np.ndarray, "m"]

    @classmethod
    def of(cls, scaled: ScaledConstraints) -> LargeInstance:
        """Takes the first instance of a batch; its vectors are copied only if some are left out."""
        used = scaled.nonzero[0]
        slots: Any = np.s_[:] if used.all() else np.flatnonzero(used)
        c, inequality = scaled.bounds[0, slots], scaled.inequality[0, slots]
        constraints = GroupedConstraints.of(scaled.left[0, slots], scaled.right[0, slots])
        positive = inequality & (c > 0)
        curable = positive & bool((c[~positive] == 0).all())
        return cls(constraints, c, inequality, slots, curable)

    def bounds_from(
        self, norm: float, x: Float[np.ndarray, "m"], margins: Float[np.ndarray, "m"]
    ) -> tuple[float, float]:
        """Estimates of an upper and a lower bound on the optimum.

        Args:
            norm: Of W.
            x: Multipliers, of dual norm one.
            margins: Of W.

        Returns:
            The norm of W once scaled up until no margin is short, infinite where no multiple of
            W will do; and what the multipliers prove.
        """
        c = self.bounds
        unmet = self._unmet(margins)
        lower, least = float(max(c @ x, 0.0)), 1.0
        if self.curable.any():
            least = min(float((margins[self.curable] / c[self.curable]).min()), 1.0)
        if not least > 0 or unmet.max(initial=0.0) > _LOOSE * (1 + norm):
            return np.inf, lower
        return (norm + float(np.abs(x) @ unmet)) / least, lower

    def farkas_residual(self, x: Float[np.ndarray, "m"]) -> float:
        """``||sum x_j a_j b_j^T|| / sum |x_j|``, infinite unless ``sum c_j x_j > 0``."""
        weight = np.abs(x).sum()
        if not self.bounds @ x > 0 or not np.isfinite(weight):
            return np.inf
        return float(np.sqrt((self.constraints.combine(x) ** 2).sum()) / weight)

    def settle(
        self, W: Float[np.ndarray, "d e"], x: Float[np.ndarray, "m"]
    ) -> Float[np.ndarray, "d e"]:
        """W moved as little as makes hold what scaling cannot make hold."""
        if self.curable.all():
            return W
        held = ~self.curable & (~self.inequality | (x > 0))
        best = np.inf, W
        for _ in range(_ROUNDS):
            margins = self.constraints.margins(W)
            off, unmet = self.bounds - margins, self._unmet(margins)
            best = min(best, (float(unmet.max()), W), key=operator.itemgetter(0))
            if best[0] == 0:
                break
            held = held | (unmet > 0)
            system = FreeSystem(self.constraints, held, 0.0)
            step, _ = system.solve(off, np.zeros_like(off), reduction=1e-6)
            W = W + self.constraints.combine(step)
        return best[1]

    def scaled_to_meet(self, W: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"]:
        """W scaled until the smallest margin is what it must be, where scaling does that."""
        if not self.curable.any():
            return W
        margins = self.constraints.margins(W)[self.curable]
        least = float((margins / self.bounds[self.curable]).min())
        return W / least if least > 0 else W

    def _unmet(self, margins: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """Shortfall of each constraint that scaling W up does not cure."""
        off = self.bounds - margins
        unmet = np.where(self.inequality, np.maximum(off, 0.0), np.abs(off))
        return np.where(self.curable, 0.0, unmet)
