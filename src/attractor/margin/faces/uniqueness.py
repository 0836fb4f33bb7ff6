"""The set of optimal solutions, and whether it is a single one."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from jaxtyping import Bool, Float

from attractor.geometry import (
    Geometry,
    Schatten,
    has_norm_of,
    singular_value_decomposition,
    singular_values,
)
from attractor.margin.batching import extended
from attractor.margin.batching.batches import Batch
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import certify_scaled
from attractor.margin.faces.optimal_face import (
    Directions,
    Entries,
    exposed_face,
    symmetric_features,
)
from attractor.margin.methods import status_of
from attractor.margin.problem import MarginProblem
from attractor.support.errors import Status

_LARGEST_EXPLICIT = 4_000_000
"""Entries of the matrix of constraints up to which it is decomposed: some seconds."""
_ROUNDING = np.finfo(np.float64).eps
_DEPENDENT_VALUES = 1e-11
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
        kept = values > _DEPENDENT_VALUES * values[0]
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


_FINEST, _COARSEST = 1e-14, 1e-6
"""Gap below which rounding blurs the face all the same, and gap above which it is not known."""
_FINE = 1e4
"""The finer accuracy, in units of the gap: solutions are within 1e-4 of the face."""
_DEPENDENT = 100.0
"""Singular value, in units of the coarse accuracy, that may be zero."""
_DEPENDENT_ENTRIES = 1e-9
"""The same where the face is made of entries: rows are then exact but for rounding."""
_MOST_HALVINGS = 10
_FAR = 1e-3
"""Distance between two solutions, relative to one of them, from which on they are two."""
_CURVED = 10.0
"""The same in units of ``sqrt(gap)``: where the ball is round, that is how far a gap reaches."""
_LARGEST = 4_000_000
"""Numbers of margins of unit coordinates, of all solutions looked at together: 32 MB."""
_SAME = 1e-9
"""Largest relative gap, or shortfall of a margin, of another solution."""


class Uniqueness(enum.Enum):
    """Whether there are other solutions."""

    UNIQUE = "unique"
    NOT_UNIQUE = "not unique"
    NOT_KNOWN = "not known"

    def __str__(self) -> str:
        """The words."""
        return self.value


def uniqueness_of(
    problem: MarginProblem,
    W: Float[np.ndarray, "d e"],
    multipliers: Float[np.ndarray, "m"],
    gap: float,
    geometry: Geometry,
) -> tuple[Uniqueness, Float[np.ndarray, "d e"] | None]:
    """Whether there are other solutions, and one of them where there are.

    All solutions lie in the face of the ball that the multipliers expose, have the same norm, and
    meet every constraint that carries a multiplier with equality. If no two matrices of the face
    have the same margins there, the solution is unique. If some have, and W can move along their
    difference, a second solution is looked for on the way, and believed only if the same
    multipliers certify it to a gap of 1e-9, and no margin is short by more than 1e-9 of its bound.

    With gap g, solutions are within ``g / t`` of a face and of margins that leave out what the
    multipliers determine by less than t. Where ``t = sqrt(g)`` does not tell, a smaller one may.

    Args:
        problem: A single problem.
        W: A solution; NaN if there is none.
        multipliers: Its multipliers.
        gap: Its relative duality gap.
        geometry: The norm.
    """
    if not np.isfinite(W).all():
        return Uniqueness.NOT_KNOWN, None
    if geometry.unique or not W.any():
        return Uniqueness.UNIQUE, None
    if not gap <= _COARSEST:
        return Uniqueness.NOT_KNOWN, None
    search = _Search(problem, W, multipliers, gap, geometry)
    coarse = float(_accuracy(gap))
    for accuracy in (coarse, min(coarse, _FINE * max(gap, _FINEST))):
        answer, other = search.judge(accuracy, _DEPENDENT * coarse)
        if answer is not Uniqueness.NOT_KNOWN:
            break
    return answer, other


def unique_at_once(
    problem: MarginProblem,
    W: Float[np.ndarray, "instances d e"],
    multipliers: Float[np.ndarray, "instances m"],
    gap: Float[np.ndarray, "instances"],
    geometry: Geometry,
) -> Bool[np.ndarray, "instances"]:
    """Which nuclear solutions of a batch are unique by what ``uniqueness_of`` looks at first.

    Most are: no two matrices of the face have the same margins. What is not found here, and all
    other norms, are left to it.

    Args:
        problem: A batch.
        W: Its solutions; NaN where there is none.
        multipliers: Their multipliers.
        gap: Their relative duality gaps.
        geometry: The norm.
    """
    unique = np.zeros(len(problem), dtype=bool)
    known = np.isfinite(W).all((-1, -2)) & W.any((-1, -2)) & (gap <= _COARSEST)
    if not (known.any() and has_norm_of(geometry, Schatten) and geometry.p == 1):
        return unique
    scaled = ScaledConstraints.of(problem)
    with np.errstate(over="ignore"):  # infinite ones tell nothing
        weights = np.ldexp(np.where(problem.present, multipliers, 0.0), scaled.shift)
    known &= np.isfinite(weights).all(-1)
    weights = np.where(known[:, None], weights * scaled.norms, 0.0)
    left, right = _unit_rows(scaled.left), _unit_rows(scaled.right)
    combined = np.swapaxes(left, -1, -2) @ (weights[..., None] * right)
    U, tau, Vt = singular_value_decomposition(combined)
    accuracy = _accuracy(np.where(known, gap, 0.0))
    # Of near-parallel constraints the sum is small beside what rounding its terms may be worth.
    known &= 16 * np.finfo(float).eps * np.abs(weights).sum(-1) <= accuracy * tau[:, 0]
    tau = tau / np.where(tau[:, :1] > 0, tau[:, :1], 1.0)
    held = scaled.nonzero & (scaled.equality | (weights > accuracy[:, None]))
    ranks = np.where(known, (tau >= 1 - accuracy[:, None]).sum(-1), 0)
    for rank in np.unique(ranks[ranks > 0]):
        alike = np.flatnonzero(ranks == rank)
        size = (held.shape[1] + 1) * rank * (rank + 1) // 2
        for own in np.array_split(alike, -(-len(alike) * size // _LARGEST)):
            margins = symmetric_features(
                left[own] @ U[own, :, :rank], right[own] @ np.swapaxes(Vt[own, :rank], -1, -2)
            )
            margins[~held[own]] = 0.0
            # All matrices of the face have the same inner product with the combination.
            shared = np.zeros((len(own), 1, margins.shape[-1]))
            shared[:, 0, np.equal(*np.triu_indices(rank))] = tau[own, :rank]
            values = singular_values(np.concatenate([margins, shared], axis=1))
            told_apart = (values > _DEPENDENT * accuracy[own, None]).sum(-1)
            unique[own] = told_apart == margins.shape[-1]
    return unique


def _accuracy(gap: Any) -> Any:
    """The coarse accuracy: numbers below it count as zero."""
    return np.sqrt(np.maximum(gap, _FINEST))


def _unit_rows(rows: Float[np.ndarray, "instances m d"]) -> Float[np.ndarray, "instances m d"]:
    """Rows of norm one; those that are zero stay so."""
    size = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(size > 0, size, 1.0)


class _Search:
    """Search for another solution, from what is known of one."""

    def __init__(
        self,
        problem: MarginProblem,
        W: Float[np.ndarray, "d e"],
        multipliers: Float[np.ndarray, "m"],
        gap: float,
        geometry: Geometry,
    ) -> None:
        self.geometry, self.given = geometry, multipliers[None]
        self.scaled = ScaledConstraints.of(problem.batched())
        self.least = max(_FAR, _CURVED * math.sqrt(gap)) * float(np.linalg.norm(W))
        self.exponent = int(np.frexp(np.abs(W).max())[1])
        self.W = np.ldexp(W, -self.exponent)
        weights = self.scaled.scale(W[None], self.given)[1][0]
        self.constraints = UnitConstraints.of(
            self.scaled, weights, self.exponent - int(self.scaled.unit[0])
        )
        # Large multipliers of near-parallel constraints leave a small sum.
        weights = np.ldexp(weights, -np.frexp(np.abs(weights).max(initial=0.0))[1])
        high, low = extended.weighted_outer_sum(self.scaled.left[0], weights, self.scaled.right[0])
        self.M = high + low

    def judge(
        self, accuracy: float, cut: float
    ) -> tuple[Uniqueness, Float[np.ndarray, "d e"] | None]:
        """The answer with numbers below the accuracy counted as zero.

        Args:
            accuracy: Relative difference of entries or singular values that is none.
            cut: Singular value that may be zero, of rows of norm one on a face not known exactly.
        """
        constraints, geometry, W = self.constraints, self.geometry, self.W
        M = self.M / float(geometry.dual_norm(self.M))
        face = exposed_face(geometry, M, W, accuracy)
        binds = constraints.equality | (constraints.multipliers > accuracy)
        bound = constraints.choose(binds)
        plain = np.vstack([bound.features(face.directions), face.shared])
        if len(row_space(plain, cut)) == face.directions.size:
            return Uniqueness.UNIQUE, None
        if isinstance(face.directions, Entries):  # known exactly, once known
            cut = _DEPENDENT_ENTRIES
        span = Span.of(bound)
        cut = max(cut, span.rounding)
        held = np.vstack([span.features(face.directions), face.shared])
        if len(row_space(held, cut)) == face.directions.size:
            return Uniqueness.UNIQUE, None
        movable, rest = face.movable, constraints.choose(~binds)
        held = span.features(movable)
        size = float(geometry.norm(W))
        slack = rest.margins(W) - rest.bounds
        slack = np.where(slack > accuracy * np.linalg.norm(W), slack, 0.0)
        move = free_move(movable, row_space(held, cut), rest.features(movable), slack, 2 * size)
        if move is None:
            whole = movable.size == face.directions.size
            return (Uniqueness.UNIQUE if whole else Uniqueness.NOT_KNOWN), None
        direction, restored = movable.matrix(move), span.restoring(W, movable)
        direction *= min(1.0, 2 * size / float(geometry.norm(direction)))
        for base in (W, face.nearest):
            for halvings in range(_MOST_HALVINGS):
                other = restored(base + math.ldexp(1.0, -halvings) * direction)
                if (found := self.certified(other)) is not None:
                    return Uniqueness.NOT_UNIQUE, found
        return Uniqueness.NOT_KNOWN, None

    def certified(self, other: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"] | None:
        """A matrix in the units of the problem, if it is proved to be another solution."""
        other = np.ldexp(other, self.exponent)
        if np.linalg.norm(other - np.ldexp(self.W, self.exponent)) < self.least:
            return None
        found = self.scaled.scale(other[None], self.given)
        certificate = certify_scaled(self.scaled, *found, self.geometry)
        status = status_of(self.scaled, certificate, self.geometry, _SAME)[0]
        met = certificate.margin[0] >= 1 - _SAME
        return other if status is Status.OPTIMAL and met else None
