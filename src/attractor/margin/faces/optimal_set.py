"""Moves along the face of a ball that leave the margins of constraints alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float

from attractor.geometry import singular_value_decomposition
from attractor.margin.batching import extended
from attractor.margin.batching.batches import Batch
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.faces.optimal_face import Directions

_LARGEST_EXPLICIT = 4_000_000
"""Entries of the matrix of constraints up to which it is decomposed: some seconds."""
_ROUNDING = np.finfo(np.float64).eps
_DEPENDENT = 1e-11
"""Relative singular value of the matrix of constraints below which rounding decides on them."""
_LEAST_MOVE = 1e-6
"""Largest coordinate, relative to what it may be, that is no move yet."""
_GOOD_STEP = 0.1
"""Share of the way that a random direction may lead from which on no better one is looked for."""
_MOST_ROUNDS = 3
_STEEP = 1e-3
"""Margin that a unit of a move is to change, if it is to be moved to restore one."""


@dataclass(frozen=True)
class UnitConstraints(Batch):
    """Constraints with ``||a_j|| = ||b_j|| = 1``, but for those that are absent or zero.

    W is measured in units of a power of two that is about its norm.
    """

    left: Float[np.ndarray, "m d"]
    right: Float[np.ndarray, "m e"]
    bounds: Float[np.ndarray, "m"]
    equality: Bool[np.ndarray, "m"]
    multipliers: Float[np.ndarray, "m"]

    @classmethod
    def of(
        cls, scaled: ScaledConstraints, multipliers: Float[np.ndarray, "m"], exponent: int
    ) -> UnitConstraints:
        """Of one instance, with multipliers and W in the units of the scaled constraints.

        Args:
            scaled: A batch of one.
            multipliers: Those of the scaled constraints.
            exponent: Of the power of two to measure W in.
        """
        left_size = np.linalg.norm(scaled.left[0], axis=-1)
        right_size = np.linalg.norm(scaled.right[0], axis=-1)
        kept = (left_size > 0) & (right_size > 0)
        left_size, right_size = left_size[kept], right_size[kept]
        return cls(
            scaled.left[0, kept] / left_size[:, None],
            scaled.right[0, kept] / right_size[:, None],
            np.ldexp(scaled.bounds[0, kept], -exponent) / left_size / right_size,
            scaled.equality[0, kept],
            multipliers[kept] * left_size * right_size,
        )

    def margins(self, W: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "m"]:
        """``a_j^T W b_j``."""
        return np.einsum("me,me->m", self.left @ W, self.right)

    def margins_of_difference(
        self, W: Float[np.ndarray, "d e"], other: Float[np.ndarray, "d e"]
    ) -> Float[np.ndarray, "m"]:
        """``a_j^T (W - other) b_j``, rounded once."""
        high, low = extended.bilinear(self.left, extended.two_sum(W, -other), self.right)
        return high + low

    def features(self, directions: Directions) -> Float[np.ndarray, "m k"]:
        """Margins, a unit of each coordinate."""
        return directions.features(self.left, self.right)


@dataclass(frozen=True)
class Span:
    """An orthonormal basis of what constraints span.

    Rows that nearly agree, or nearly oppose each other, constrain their difference as much as
    themselves; this basis shows it.

    Attributes:
        constraints: The constraints.
        combinations: Basis matrices are ``sum_j combinations_ij a_j b_j^T``.
    """

    constraints: UnitConstraints
    combinations: Float[np.ndarray, "r m"]
    _left: Float[np.ndarray, "d p"]
    _right: Float[np.ndarray, "e q"]
    _basis: Float[np.ndarray, "r pq"] | None

    @classmethod
    def of(cls, constraints: UnitConstraints) -> Span:
        """The constraints themselves where they are too many to decompose."""
        left, right = _column_space(constraints.left.T), _column_space(constraints.right.T)
        m, size = len(constraints.left), left.shape[1] * right.shape[1]
        if not m or m * size > _LARGEST_EXPLICIT:
            return cls(constraints, np.eye(m), left, right, None)
        a, b = constraints.left @ left, constraints.right @ right
        rows = (a[:, :, None] * b[:, None]).reshape(m, size)
        P, values, basis = singular_value_decomposition(rows)
        kept = values > _DEPENDENT * values[0]
        combinations = (P[:, kept] / values[kept]).T
        return cls(constraints, combinations, left, right, basis[kept])

    @property
    def rounding(self) -> float:
        """What rounding of rows may be worth in the basis; near-parallel ones enlarge it."""
        return 16 * _ROUNDING * float(np.abs(self.combinations).sum(-1).max(initial=0.0))

    def features(self, directions: Directions) -> Float[np.ndarray, "r k"]:
        """Inner products of the basis with the matrices of unit coordinates."""
        return self.combinations @ self.constraints.features(directions)

    def restoring(
        self, W: Float[np.ndarray, "d e"], directions: Directions
    ) -> Callable[[Float[np.ndarray, "d e"]], Float[np.ndarray, "d e"]]:
        """A function that gives a matrix the margins of W, and moves it as little as can be.

        Args:
            W: Has the margins wanted.
            directions: To be moved in, as far as that helps.
        """
        held = self.features(directions)
        P, values, Q = singular_value_decomposition(held)
        steep = values > _STEEP
        inverse = (Q[steep].T / values[steep]) @ P[:, steep].T

        def restored(other: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"]:
            for _ in range(_MOST_ROUNDS):
                missing = self.combinations @ self.constraints.margins_of_difference(W, other)
                step = inverse @ missing
                other = other + directions.matrix(step)
                missing = missing - held @ step
                if self._basis is not None:
                    inner = (missing @ self._basis).reshape(self._left.shape[1], -1)
                    other = other + self._left @ inner @ self._right.T
            return other

        return restored


def row_space(rows: Float[np.ndarray, "m k"], cut: float) -> Float[np.ndarray, "r k"]:
    """An orthonormal basis of what rows span, singular values below the cut left out."""
    if not rows.size:
        return np.zeros((0, rows.shape[1]))
    _, values, basis = singular_value_decomposition(rows)
    return basis[values > cut]


def free_move(
    directions: Directions,
    held: Float[np.ndarray, "r k"],
    others: Float[np.ndarray, "t k"],
    slack: Float[np.ndarray, "t"],
    longest: float,
) -> Float[np.ndarray, "k"] | None:
    """Coordinates of a move that leaves held margins alone and lowers others by their slack.

    Args:
        directions: The space to move in.
        held: An orthonormal basis of the rows that are to give zero.
        others: Rows that may give minus their slack, and more.
        slack: At least zero.
        longest: No coordinate is to exceed it.

    Returns:
        None if there is none.
    """
    if not directions.size:
        return None
    functional = np.random.default_rng(0).normal(size=directions.size)
    functional -= (functional @ held.T) @ held
    largest = np.abs(functional).max()
    if largest <= _LEAST_MOVE:
        return None
    functional *= longest / largest
    limits = np.clip(directions.limits(), -longest, longest)
    # A short way that needs no linear program: as far as a random direction leads.
    for move in (functional, -functional):
        losses = np.concatenate([-(others @ move), move, -move])
        limit = np.concatenate([slack, limits[:, 1], -limits[:, 0]])
        step = np.min(limit[losses > 0] / losses[losses > 0], initial=1.0)
        if step >= _GOOD_STEP:
            return step * move
    # A functional that is random is zero on all such moves only if there is none.
    farthest = np.zeros(directions.size)
    for sign in (1, -1):
        found = scipy.optimize.linprog(
            sign * functional / longest,
            A_ub=-others if len(others) else None,
            b_ub=slack if len(others) else None,
            A_eq=held if len(held) else None,
            b_eq=np.zeros(len(held)) if len(held) else None,
            bounds=limits,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10},
        )
        if found.x is not None and np.abs(found.x).max() > np.abs(farthest).max():
            farthest = found.x - (found.x @ held.T) @ held
        if np.abs(farthest).max() >= _GOOD_STEP * longest:
            break
    return farthest if np.abs(farthest).max() > _LEAST_MOVE * longest else None


def _column_space(columns: Float[np.ndarray, "d m"]) -> Float[np.ndarray, "d p"]:
    """An orthonormal basis of a space that has all columns."""
    d, m = columns.shape
    return np.eye(d) if m >= d else np.linalg.qr(columns)[0]
