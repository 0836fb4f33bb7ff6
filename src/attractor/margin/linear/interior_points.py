"""Interior points of linear programs over the entries of a matrix, and steps along them.

An interior-point method keeps the products of nonnegative numbers that must vanish near one
number, and drives that to zero (Mehrotra 1992).
"""

from __future__ import annotations

import abc
import copy
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.batching.batches import inner_products
from attractor.margin.linear.normal_equations import Factor, Solve

_NO_SLACK = 1e-200
"""Slack of equalities and of absent constraints: small enough to enter no sum."""
_STRETCH = 1.3
"""Factor of a matrix that meets positive bounds, so that it leaves some slack."""
_TINY, _PADDING = 1e-4, 8 * np.finfo(np.float64).eps
"""Bounds that are tiny, and how much to raise them, both in units of the size of the matrix."""
_FRACTION = 0.99
"""Of the way to the boundary that a step may go."""


class EntrywiseProgram(abc.ABC):
    """A batch of linear programs, with an interior point of each.

    Attributes:
        rows: The constraints F; zero where absent.
        bounds: The c; zero where absent.
        inequality: False for equalities and absent constraints.
        present: False for absent constraints.
        multipliers: The lambda.
        primal: First factors of the products: two for each entry, then the slacks s.
        dual: Second factors: two for each entry, then the multipliers of inequalities, 1 for the
            other constraints.
        border_size: Unknowns beside entries and slacks.
    """

    border_size: ClassVar[int]
    _unmet: Float[np.ndarray, "k m"]
    _ratios: Float[np.ndarray, "k n"]
    _parts: tuple[np.ndarray, ...]
    _solve: Solve

    def __init__(
        self,
        rows: Float[np.ndarray, "k m D"],
        bounds: Float[np.ndarray, "k m"],
        inequality: Bool[np.ndarray, "k m"],
        present: Bool[np.ndarray, "k m"],
        w: Float[np.ndarray, "k D"],
        multipliers: Float[np.ndarray, "k m"],
        factor: Factor,
    ) -> None:
        """Starts near a matrix and multipliers, such as those of another norm."""
        self.rows, self.bounds, self._factor = rows, bounds, factor
        self.inequality, self.present = inequality, present
        share = _mean(np.abs(multipliers), present)
        shifted = np.maximum(multipliers, 0.0) + 0.05 * or_one(share)
        multipliers = np.where(inequality, shifted, np.where(present, multipliers, 0.0))
        positive = (inequality & (bounds > 0)) | ~present
        w = np.where(positive.all(-1, keepdims=True), _STRETCH, 1.0) * w
        slack = self.margins(w) - bounds
        size = _mean(np.abs(slack) + np.abs(bounds), inequality)
        slack = np.where(slack > 0.01 * size, slack, 0.05 * or_one(size))
        entries, dual_entries, scale = self._begin(w, self.combine(multipliers))
        self.multipliers = multipliers * scale
        self.primal = np.hstack([entries, np.where(inequality, slack, _NO_SLACK)])
        self.dual = np.hstack([dual_entries, np.where(inequality, self.multipliers, 1.0)])

    @abc.abstractmethod
    def _begin(self, w: Any, combined: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First and second factors of entries, and what to multiply the multipliers by."""

    @abc.abstractmethod
    def _weigh(self) -> tuple[list[np.ndarray], tuple[np.ndarray, ...]]:
        """Blocks of the system, but for its diagonal, and what directions need beside it."""

    @abc.abstractmethod
    def _direction(
        self, change: Float[np.ndarray, "k n"]
    ) -> tuple[Float[np.ndarray, "k n"], Float[np.ndarray, "k n"], Float[np.ndarray, "k m"]]:
        """Changes of primal, dual and multipliers that change the products as given."""

    @property
    @abc.abstractmethod
    def w(self) -> Float[np.ndarray, "k D"]:
        """Entries of the matrix."""

    @abc.abstractmethod
    def entry_ratios(self) -> Float[np.ndarray, "k D"]:
        """Large where an entry lies between its bounds, small where it is at one."""

    @abc.abstractmethod
    def signs(self) -> Float[np.ndarray, "k D"]:
        """The signs that entries seem to have."""

    @abc.abstractmethod
    def costs(self, signs: Float[np.ndarray, "k D"]) -> Float[np.ndarray, "k D"]:
        """Cost of an entry between its bounds in the norm, a unit."""

    @abc.abstractmethod
    def border(
        self, bounded: Bool[np.ndarray, "k D"], signs: Float[np.ndarray, "k D"]
    ) -> Float[np.ndarray, "k border D"]:
        """The entries at their bounds, a unit of each unknown beside entries and slacks."""

    def slack_ratios(self) -> Float[np.ndarray, "k m"]:
        """Large where a constraint is slack, small where it is tight."""
        return self._slacks(self.primal) / self._slacks(self.dual)

    def padded_bounds(self) -> Float[np.ndarray, "k m"]:
        """The bounds; tiny ones raised by more than what rounding takes from a margin.

        To scale a matrix up until a tiny bound is met would cost far more.
        """
        reach = np.sqrt(inner_products(self.w, self.w))[:, None]
        tiny = self.inequality & (self.bounds > 0) & (self.bounds < _TINY * reach)
        return np.where(tiny, self.bounds + _PADDING * reach, self.bounds)

    def choose(self, index: Any) -> EntrywiseProgram:
        """Chooses instances."""
        chosen = copy.copy(self)
        for name in ("rows", "bounds", "inequality", "present", "multipliers", "primal", "dual"):
            setattr(chosen, name, getattr(self, name)[index])
        return chosen

    def margins(self, w: Float[np.ndarray, "k D"]) -> Float[np.ndarray, "k m"]:
        """``F w``."""
        return (self.rows @ w[..., None])[..., 0]

    def combine(self, multipliers: Float[np.ndarray, "k m"]) -> Float[np.ndarray, "k D"]:
        """``F^T lambda``."""
        return (multipliers[:, None, :] @ self.rows)[:, 0, :]

    @property
    def gap(self) -> Float[np.ndarray, "k"]:
        """Relative duality gap, were the point feasible."""
        total = inner_products(self.primal, self.dual)
        return total / (total + np.abs(inner_products(self.bounds, self.multipliers)))

    def advance(self) -> None:
        """Makes one predictor-corrector step."""
        self._unmet = self.bounds + self._slacks(self.primal) - self.margins(self.w)
        self._ratios = self.primal / self.dual
        blocks, self._parts = self._weigh()
        diagonal = np.where(self.present, self._slacks(self._ratios), 1.0)
        self._solve = self._factor(blocks, diagonal)

        # Predictor: a step toward products of zero, which tells how far their mean may fall.
        product = self.primal * self.dual
        counted = self.primal.shape[-1] - (~self.inequality).sum(-1, keepdims=True)
        mean = product.sum(-1, keepdims=True) / counted
        dx, dz, _ = self._direction(-product)
        ahead = (self.primal + _longest(self.primal, dx) * dx) * (
            self.dual + _longest(self.dual, dz) * dz
        )
        center = mean * (ahead.sum(-1, keepdims=True) / (counted * mean)) ** 3
        # Corrector: toward that mean, less the second-order term of the predictor.
        change = center - product - dx * dz
        self._slacks(change)[~self.inequality] = 0.0
        dx, dz, dlambda = self._direction(change)
        self.primal += _longest(self.primal, dx, _FRACTION) * dx
        step = _longest(self.dual, dz, _FRACTION)
        self.dual += step * dz
        self.multipliers += step * dlambda

    def _slacks(self, factors: Float[np.ndarray, "k n"]) -> Float[np.ndarray, "k m"]:
        """The part of the constraints."""
        return factors[:, -self.bounds.shape[-1] :]

    def _halves(self, factors: Float[np.ndarray, "k n"]) -> tuple[np.ndarray, np.ndarray]:
        """The two parts of the entries."""
        entries = self.rows.shape[-1]
        return factors[:, :entries], factors[:, entries : 2 * entries]


def _longest(
    factors: Float[np.ndarray, "k n"], change: Float[np.ndarray, "k n"], fraction: float = 1.0
) -> Float[np.ndarray, "k 1"]:
    """The longest step, at most one, that leaves factors positive, or a fraction of it."""
    fastest = -(change / factors).min(-1, keepdims=True)
    return fraction / np.maximum(fastest, fraction)


def _mean(numbers: Float[np.ndarray, "k m"], chosen: Bool[np.ndarray, "k m"]) -> np.ndarray:
    """The mean of the chosen numbers of each instance, zero if there are none."""
    total = np.where(chosen, numbers, 0.0).sum(-1, keepdims=True)
    return total / np.maximum(chosen.sum(-1, keepdims=True), 1)


def or_one(sizes: np.ndarray) -> np.ndarray:
    """Sizes, and one in place of zero."""
    return np.where(sizes > 0, sizes, 1.0)
