"""The constraints of one instance, with sums and margins beyond working precision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float, Int

from attractor.margin.batching import extended
from attractor.margin.batching.batches import Batch
from attractor.margin.batching.scaling import ScaledConstraints

_REDUNDANT = 1e-12
"""Distance of an equality from the span of others, relatively, that is rounding."""


@dataclass(frozen=True)
class Constraints(Batch):
    """The constraints present in an instance, those that are zero left out.

    Attributes:
        left: The ``a``.
        right: The ``b``.
        bounds: The ``c``.
        inequality: False for equalities.
        slots: Slot of each constraint in the batch.
    """

    left: Float[np.ndarray, "m d"]
    right: Float[np.ndarray, "m e"]
    bounds: Float[np.ndarray, "m"]
    inequality: Bool[np.ndarray, "m"]
    slots: Int[np.ndarray, "m"]

    @classmethod
    def of(cls, scaled: ScaledConstraints, i: int, unit: float) -> Constraints:
        """Takes instance i out of a batch, W measured in a unit."""
        slots = np.flatnonzero(scaled.nonzero[i])
        left, right = scaled.left[i, slots], scaled.right[i, slots]
        bounds, inequality = scaled.bounds[i, slots] / unit, scaled.inequality[i, slots]
        return cls(left, right, bounds, inequality, slots)

    def without_repetition(self) -> Bool[np.ndarray, "m"]:
        """Which constraints to keep so that equalities are linearly independent."""
        keep = np.ones(len(self.slots), dtype=bool)
        held = np.flatnonzero(~self.inequality)
        if held.size:
            factors: Any = scipy.linalg.qr(self.rows[held].T, mode="r", pivoting=True)
            diagonal = np.abs(np.diag(factors[0]))
            rank = int((diagonal > _REDUNDANT * diagonal[0]).sum())
            keep[held[factors[1][rank:]]] = False
        return keep

    @cached_property
    def rows(self) -> Float[np.ndarray, "m de"]:
        """The ``a_j b_j^T``, written out."""
        return (self.left[:, :, None] * self.right[:, None]).reshape(len(self.left), -1)

    def combine(self, x: Float[np.ndarray, "m"]) -> Float[np.ndarray, "d e"]:
        """``sum_j x_j a_j b_j^T``."""
        return self.left.T @ (x[:, None] * self.right)

    def combine_exactly(self, x: extended.Pair) -> extended.Pair:
        """The same for multipliers that are unevaluated sums, as one."""
        total = extended.weighted_outer_sum(self.left, x[0], self.right)
        return extended.add(total, self.combine(x[1]), 0.0)

    def shortfall(
        self, targets: Float[np.ndarray, "m"], W: extended.Pair
    ) -> Float[np.ndarray, "m"]:
        """``targets - a_j^T W b_j``, correct to the last digit."""
        high, low = extended.bilinear(self.left, W, self.right)
        return (targets - high) - low
