"""Exact scaling of constraints by powers of two, so that nothing later overflows or is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.margin.batching.batches import Batch
from attractor.margin.problem import MarginProblem

_NO_UNIT = np.iinfo(np.int32).min // 2
_FARTHEST = 400
_PORTION = 1024
"""Constraints multiplied at a time."""


@dataclass(frozen=True)
class ScaledConstraints(Batch):
    """The constraints of a batch with ``||a_j||`` and ``||b_j||`` in [1/2, 1), or exactly zero.

    A constraint ``<a_j b_j^T, W> >= c_j`` is multiplied by ``2^-shift_j``, and W is measured in
    units of ``2^unit``, so that the largest bound that forces W away from zero lies in [1/2, 1).
    All factors are powers of two: the scaled problem is the given one, with no rounding. For
    solvers, bounds beyond ``2^-400`` and ``2^400`` of that one are moved there, so that none gets
    lost; what is proved is proved with the given ones.

    Attributes:
        left: Scaled ``a``; zero in absent slots, as is everything else.
        right: Scaled ``b``.
        bounds: Scaled ``c``, as solvers take it.
        given: Scaled ``c``, not moved, to the nearest number of these units.
        inequality: True for inequalities that are present.
        equality: True for equalities that are present.
        norms: ``||a_j|| ||b_j||`` of the scaled constraints.
        shift: Binary exponent taken out of each constraint.
        unit: Binary exponent taken out of each W.
    """

    left: Float[np.ndarray, "instances m d"]
    right: Float[np.ndarray, "instances m e"]
    bounds: Float[np.ndarray, "instances m"]
    given: Float[np.ndarray, "instances m"]
    inequality: Bool[np.ndarray, "instances m"]
    equality: Bool[np.ndarray, "instances m"]
    norms: Float[np.ndarray, "instances m"]
    shift: Int[np.ndarray, "instances m"]
    unit: Int[np.ndarray, "instances"]

    @classmethod
    def of(cls, problem: MarginProblem) -> ScaledConstraints:
        """Scales a batched problem."""
        left, right = problem.left, problem.right
        if not problem.present.all():  # absent slots may hold anything
            held = problem.present[..., None]
            left, right = np.where(held, left, 0.0), np.where(held, right, 0.0)
        left, left_norm, left_shift = _unit_rows(left)
        right, right_norm, right_shift = _unit_rows(right)
        shift = left_shift + right_shift
        mantissa, exponent = np.frexp(np.where(problem.present, problem.bounds, 0.0))
        exponent = exponent - shift
        # What forces W away from zero sets its unit; how far others are slack does not.
        forcing = (mantissa > 0) | (problem.equality & (mantissa != 0))
        forcing &= left_norm * right_norm > 0
        unit = np.max(np.where(forcing, exponent, _NO_UNIT), axis=-1, initial=_NO_UNIT)
        unit = np.where(unit > _NO_UNIT, unit, 0)
        exponent = exponent - unit[:, None]
        bounds = given = np.ldexp(mantissa, np.clip(exponent, -_FARTHEST, _FARTHEST))
        if (abs(exponent) > _FARTHEST).any():
            with np.errstate(over="ignore"):
                given = np.ldexp(mantissa, exponent)
        return cls(
            left,
            right,
            bounds,
            given,
            problem.present & ~problem.equality,
            problem.present & problem.equality,
            left_norm * right_norm,
            shift,
            unit,
        )

    @property
    def present(self) -> Bool[np.ndarray, "instances m"]:
        """Slots that hold a constraint."""
        return self.inequality | self.equality

    @property
    def nonzero(self) -> Bool[np.ndarray, "instances m"]:
        """Constraints with ``a b^T != 0``."""
        return self.present & (self.norms > 0)

    @property
    def impossible(self) -> Bool[np.ndarray, "instances m"]:
        """Constraints ``0 >= c > 0`` and ``0 = c != 0``."""
        wrong = (self.inequality & (self.bounds > 0)) | (self.equality & (self.bounds != 0))
        return wrong & (self.norms == 0)

    @property
    def positive(self) -> Bool[np.ndarray, "instances m"]:
        """Inequalities with ``c > 0``, which scaling W up can meet."""
        return self.inequality & (self.bounds > 0)

    @property
    def scalable(self) -> Bool[np.ndarray, "instances"]:
        """Whether scaling W up leaves all other constraints as they are: their bounds are zero."""
        return ~(self.present & ~self.positive & (self.bounds != 0)).any(-1)

    @property
    def given_range(
        self,
    ) -> tuple[Float[np.ndarray, "instances m"], Float[np.ndarray, "instances m"]]:
        """Numbers between which the given bounds lie: they are rounded below the normal numbers."""
        rounded = (np.abs(self.given) < np.finfo(np.float64).tiny) & (self.bounds != 0)
        if not rounded.any():
            return self.given, self.given
        below, above = np.nextafter(self.given, -np.inf), np.nextafter(self.given, np.inf)
        return np.where(rounded, below, self.given), np.where(rounded, above, self.given)

    def without(self, inactive: Bool[np.ndarray, "instances m"]) -> ScaledConstraints:
        """The same with some slots empty."""
        return ScaledConstraints(
            np.where(inactive[..., None], 0.0, self.left),
            np.where(inactive[..., None], 0.0, self.right),
            np.where(inactive, 0.0, self.bounds),
            np.where(inactive, 0.0, self.given),
            self.inequality & ~inactive,
            self.equality & ~inactive,
            np.where(inactive, 0.0, self.norms),
            self.shift,
            self.unit,
        )

    def margins(self, W: Float[np.ndarray, "instances d e"]) -> Float[np.ndarray, "instances m"]:
        """``a_j^T W b_j``."""
        result = np.empty(self.bounds.shape)
        for rows in self._portions():
            image = self.left[:, rows] @ W
            np.einsum("ime,ime->im", image, self.right[:, rows], out=result[:, rows])
        return result

    def combine(
        self, multipliers: Float[np.ndarray, "instances m"]
    ) -> Float[np.ndarray, "instances d e"]:
        """``sum_j lambda_j a_j b_j^T``, its entries sums of ``depth`` numbers in turn."""
        result = np.zeros((len(self.bounds), self.left.shape[-1], self.right.shape[-1]))
        for rows in self._portions():
            weighted = multipliers[:, rows, None] * self.right[:, rows]
            result += np.swapaxes(self.left[:, rows], -1, -2) @ weighted
        return result

    @property
    def depth(self) -> int:
        """Additions that a number passes through in ``combine``; they bound its rounding."""
        m = self.bounds.shape[-1]
        return min(m, _PORTION) + -(-m // _PORTION)

    def _portions(self) -> list[slice]:
        """Constraints to handle at a time: temporary arrays and rounding stay small."""
        return [slice(i, i + _PORTION) for i in range(0, max(self.bounds.shape[-1], 1), _PORTION)]

    def scale(
        self, W: Float[np.ndarray, "instances d e"], multipliers: Float[np.ndarray, "instances m"]
    ) -> tuple[Float[np.ndarray, "instances d e"], Float[np.ndarray, "instances m"]]:
        """W and multipliers of the given problem, in scaled units.

        The multipliers have the same ``sum_j lambda_j a_j b_j^T``.
        """
        with np.errstate(over="ignore"):  # infinite ones prove nothing
            return np.ldexp(W, -self.unit[:, None, None]), np.ldexp(multipliers, self.shift)

    def restore(
        self, W: Float[np.ndarray, "instances d e"], multipliers: Float[np.ndarray, "instances m"]
    ) -> tuple[Float[np.ndarray, "instances d e"], Float[np.ndarray, "instances m"]]:
        """The inverse of ``scale``; W is NaN where it is too large in given units."""
        with np.errstate(over="ignore"):
            W, multipliers = (
                np.ldexp(W, self.unit[:, None, None]),
                np.ldexp(multipliers, -self.shift),
            )
        return np.where(np.isinf(W).any((-1, -2), keepdims=True), np.nan, W), multipliers

    def restore_bound(
        self, bound: Float[np.ndarray, "instances"], toward: float
    ) -> Float[np.ndarray, "instances"]:
        """A bound on the norm, in given units; rounded toward a side below the normal numbers."""
        given = np.ldexp(bound, self.unit)
        rounded = (given < np.finfo(np.float64).tiny) & (bound > 0)
        return np.where(rounded, np.nextafter(given, toward), given)


def _unit_rows(rows: Float[np.ndarray, "instances m d"]) -> tuple[np.ndarray, ...]:
    """Rows with norm in [1/2, 1) or zero, their norms, and the exponents taken out."""
    first: Any = 0
    with np.errstate(over="ignore", under="ignore"):
        square = np.einsum("...c,...c->...", rows, rows)
    if not ((square > 1e-250) & (square < 1e250)).all():  # squares may not be trusted
        first = np.frexp(np.abs(rows).max(axis=-1, initial=0.0))[1]
        rows = np.ldexp(rows, -first[..., None])
        square = np.einsum("...c,...c->...", rows, rows)
    norm = np.sqrt(square)
    second = np.frexp(norm)[1]
    return np.ldexp(rows, -second[..., None]), np.ldexp(norm, -second), first + second
