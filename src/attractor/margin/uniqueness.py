"""Whether a margin problem has other solutions than the one in hand."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from jaxtyping import Bool, Float

from attractor.geometry import Geometry
from attractor.margin.optimal_face import Directions, face_directions
from attractor.margin.problem import MarginProblem

_FINEST, _COARSEST = 1e-14, 1e-6
"""Gap below which rounding blurs the face all the same, and gap above which it cannot be told."""
_FINE = 1e4
"""The finer accuracy, in units of the gap: solutions are within 1e-4 of the face."""
_DEPENDENT = 100.0
"""Singular value, in units of the coarse accuracy, that may be zero."""
_MOST_HALVINGS = 10
_FAR = 1e-3
"""Distance between two solutions, relative to one of them, from which on they are two."""
_SAME = 1e-9
"""Largest relative excess of the norm, or shortfall of a margin, of another solution."""


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

    All solutions lie in the face of the ball that the multipliers expose, and meet every
    constraint that carries a multiplier with equality. If no two matrices of the face have the
    same margins there, the solution is unique. If some have, and W can move along their
    difference, a second solution is looked for on the way, and believed only if its norm and
    margins are right to 1e-9.

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
    if geometry.unique:
        return Uniqueness.UNIQUE, None
    if not gap <= _COARSEST:
        return Uniqueness.NOT_KNOWN, None
    norm = float(geometry.norm(W))
    if norm == 0:
        return Uniqueness.UNIQUE, None
    constraints = _UnitConstraints.of(problem, multipliers, norm)
    coarse = math.sqrt(max(gap, _FINEST))
    for accuracy in (coarse, min(coarse, _FINE * max(gap, _FINEST))):
        answer, other = _judge(constraints, W / norm, geometry, accuracy, _DEPENDENT * coarse)
        if answer is not Uniqueness.NOT_KNOWN:
            break
    return answer, None if other is None else norm * other


def _judge(
    constraints: _UnitConstraints,
    unit: Float[np.ndarray, "d e"],
    geometry: Geometry,
    accuracy: float,
    cut: float,
) -> tuple[Uniqueness, Float[np.ndarray, "d e"] | None]:
    """The same for a solution of norm one, with numbers below the accuracy counted as zero."""
    M = constraints.left.T @ (constraints.multipliers[:, None] * constraints.right)
    M = M / float(geometry.dual_norm(M))
    binding = constraints.equality | (constraints.multipliers > accuracy)
    slack = constraints.margins(unit) - constraints.bounds
    slack = np.where(slack > accuracy, slack, 0.0) / np.linalg.norm(unit)
    face, movable = face_directions(geometry, M, unit, accuracy)
    if len(_row_space(constraints.features(face, binding), cut)) == face.size:
        return Uniqueness.UNIQUE, None
    held = _row_space(constraints.features(movable, binding), cut)
    others = constraints.features(movable, ~binding)
    move = _free_move(movable, held, others, slack[~binding])
    if move is None:
        whole = movable.size == face.size
        return (Uniqueness.UNIQUE if whole else Uniqueness.NOT_KNOWN), None
    other = _other(constraints, unit, movable.matrix(move), geometry)
    return (Uniqueness.NOT_KNOWN if other is None else Uniqueness.NOT_UNIQUE), other


@dataclass(frozen=True)
class _UnitConstraints:
    """Constraints with ``||a_j|| = ||b_j|| = 1``, in units of the norm of the solution."""

    left: Float[np.ndarray, "m d"]
    right: Float[np.ndarray, "m e"]
    bounds: Float[np.ndarray, "m"]
    equality: Bool[np.ndarray, "m"]
    multipliers: Float[np.ndarray, "m"]

    @classmethod
    def of(cls, problem: MarginProblem, multipliers: np.ndarray, norm: float) -> _UnitConstraints:
        """Leaves out constraints that are absent or zero."""
        left_size = np.linalg.norm(problem.left, axis=-1)
        right_size = np.linalg.norm(problem.right, axis=-1)
        kept = problem.present & (left_size > 0) & (right_size > 0)
        left_size, right_size = left_size[kept], right_size[kept]
        return cls(
            problem.left[kept] / left_size[:, None],
            problem.right[kept] / right_size[:, None],
            problem.bounds[kept] / left_size / right_size / norm,
            problem.equality[kept],
            multipliers[kept] * left_size * right_size,
        )

    def margins(self, W: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "m"]:
        """``a_j^T W b_j``."""
        return np.einsum("me,me->m", self.left @ W, self.right)

    def features(
        self, directions: Directions, chosen: Bool[np.ndarray, "m"]
    ) -> Float[np.ndarray, "n k"]:
        """Margins of the chosen constraints, a unit of each coordinate."""
        return directions.features(self.left[chosen], self.right[chosen])


def _row_space(rows: Float[np.ndarray, "m k"], cut: float) -> Float[np.ndarray, "r k"]:
    """An orthonormal basis of what rows span, singular values below the cut left out."""
    if not rows.size:
        return np.zeros((0, rows.shape[1]))
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[values > cut]


def _free_move(
    directions: Directions,
    held: Float[np.ndarray, "r k"],
    others: Float[np.ndarray, "t k"],
    slack: Float[np.ndarray, "t"],
) -> Float[np.ndarray, "k"] | None:
    """Coordinates of a move that leaves held margins alone and lowers others by their slack.

    A random functional is zero on all such moves only if there is none.
    """
    if not directions.size:
        return None
    functional = np.random.default_rng(0).normal(size=directions.size)
    for sign in (1, -1):
        found = scipy.optimize.linprog(
            sign * functional,
            A_ub=-others if len(others) else None,
            b_ub=slack if len(others) else None,
            A_eq=held if len(held) else None,
            b_eq=np.zeros(len(held)) if len(held) else None,
            bounds=directions.limits(),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10},
        )
        if found.x is not None and np.abs(found.x).max() > 1e-6:
            return found.x
    return None


def _other(
    constraints: _UnitConstraints,
    unit: Float[np.ndarray, "d e"],
    direction: Float[np.ndarray, "d e"],
    geometry: Geometry,
) -> Float[np.ndarray, "d e"] | None:
    """The farthest solution that halving a step in a direction leads to."""
    for halvings in range(_MOST_HALVINGS):
        step = math.ldexp(float(np.linalg.norm(unit)), -halvings)
        if step * np.linalg.norm(direction) < _FAR * np.linalg.norm(unit):
            break
        other = unit + step * direction
        short = constraints.bounds - constraints.margins(other)
        short = np.where(constraints.equality, np.abs(short), short).max(initial=0.0)
        if short <= _SAME and geometry.norm(other) <= 1 + _SAME:
            return other
    return None
