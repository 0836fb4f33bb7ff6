"""A matrix that meets all constraints exactly, near one that meets them to rounding.

W of floating-point numbers mostly meets equalities to rounding alone, and likewise bounds that no
scaling of W meets. It is moved by some D beyond working precision, with some room under each
inequality, until only equalities are open, by some 1e-30. For these, with the independent ones
among them as rows of A, and any G with ``||I - A G|| <= delta < 1``, the matrix

    W + D + G (A G)^{-1} (c - A (W + D))

meets them exactly (Rump 2010, *Verification methods*, section 10), no farther away than
``||G|| ||c - A (W + D)|| / (1 - delta)``. Equalities that depend on others, and inequalities that
leave no room, are shown in integers to follow from the rest.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from attractor.geometry import (
    BlockMaximum,
    BlockSum,
    Frobenius,
    Geometry,
    Lp,
    Schatten,
    has_norm_of,
)
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.equalities import DEPENDENT, Conditioned, Equalities, Rows, length

_ROUNDING = np.finfo(np.float64).eps / 2
_CUSHION = 8.0
"""Slack that inequalities are given, in units of the error that it is known with."""
_OF_MOVE = 2.0**-40
"""The same, as a share of the largest shortfall."""
_NO_ROOM = 1e-9
"""Largest norm of rows that cancel, where all are about one."""
_ROUNDS = 6


@dataclass(frozen=True)
class FeasiblePoint:
    """A matrix ``W + move + rest`` that meets each constraint of one instance that scaling cannot.

    Attributes:
        move: The part that is known.
        radius: Bound on the Frobenius norm of the rest.
        slack: Lower bounds on ``a_j^T (W + move + rest) b_j - c_j``, infinite in empty slots.
    """

    move: Float[np.ndarray, "d e"]
    radius: float
    slack: Float[np.ndarray, "m"]

    def norm(self, W: Float[np.ndarray, "d e"], geometry: Geometry) -> float:
        """An upper bound on the norm of the matrix."""
        moved = W + self.move
        rest = self.radius + 2 * _ROUNDING * length(moved) * bool(self.move.any())
        known = float(geometry.norm(moved)) * (1 + geometry.norm_rounding(*W.shape))
        return (known + rest * norm_constant(geometry, *W.shape)) * (1 + 4 * _ROUNDING)

    @property
    def distance(self) -> float:
        """An upper bound on its distance from W, in the Frobenius norm."""
        return (length(self.move) + self.radius) * (1 + 4 * _ROUNDING)


def feasible_point(
    scaled: ScaledConstraints,
    i: int,
    W: Float[np.ndarray, "d e"],
    curable: Bool[np.ndarray, "m"],
) -> FeasiblePoint | None:
    """A matrix near W that meets all constraints but those that scaling it up will meet.

    Args:
        scaled: The constraints of a batch.
        i: The instance.
        W: A finite matrix.
        curable: The constraints that scaling up will meet.

    Returns:
        None where none was found.
    """
    rows = Rows.of(scaled, i)
    if rows is None:
        return None
    held, cured = rows.equality.copy(), curable[rows.slots]
    close, move = np.zeros_like(held), np.zeros_like(W)
    for _ in range(_ROUNDS):
        equalities = Equalities.of(rows, held)
        if equalities is None:
            return None
        for _ in range(_ROUNDS):
            slack, doubt = rows.slack(W, move)
            radius = equalities.radius(slack, doubt)
            least = slack - doubt - radius * rows.norms
            short = ~held & ~cured & ~(least >= 0)
            if not short.any() and np.isfinite(radius):
                every = np.full(scaled.bounds.shape[-1], np.inf)
                every[rows.slots] = least
                return FeasiblePoint(move, radius, every)
            close |= short
            known = equalities.radius(np.zeros_like(slack), doubt)
            room = _CUSHION * (doubt + known * rows.norms)
            further = _lacking(rows, slack, room, equalities, close & ~held)
            if further is None:
                break
            move = move + further
        tight = _without_room(rows, equalities, close & ~held)
        if not tight.any():
            return None
        held |= tight
    return None


def slack_of(
    scaled: ScaledConstraints, i: int, W: Float[np.ndarray, "d e"]
) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
    """``a_j^T W b_j - c_j`` beyond working precision, and a bound on the error.

    Infinite in slots that are empty, and where the constraint holds whatever W is.
    """
    slack, doubt = np.full(scaled.bounds.shape[-1], np.inf), np.zeros(scaled.bounds.shape[-1])
    rows = Rows.of(scaled, i)
    if rows is not None:
        slack[rows.slots], doubt[rows.slots] = rows.slack(W, np.zeros_like(W))
    return slack, doubt


@functools.lru_cache(maxsize=256)
def norm_constant(geometry: Geometry, rows: int, columns: int) -> float:
    """A k with ``||X|| <= k ||X||_F`` for matrices of a shape: ``(sum_ij ||E_ij||^2)^(1/2)``."""
    square = 0.0
    if has_norm_of(geometry, BlockMaximum) or has_norm_of(geometry, BlockSum):
        for piece in geometry.pieces((rows, columns)):
            square += (piece.weight * norm_constant(piece.geometry, *piece.shape)) ** 2
        return float(np.sqrt(square)) * (1 + 1e-9)
    if any(has_norm_of(geometry, kind) for kind in (Frobenius, Lp, Schatten)):
        return float(np.sqrt(rows * columns)) * (1 + 1e-9)  # all of them are one
    for row in range(rows):
        units = np.zeros((columns, rows, columns))
        units[np.arange(columns), row, np.arange(columns)] = 1.0
        square += float((geometry.norm(units) ** 2).sum())
    return float(np.sqrt(square)) * (1 + 1e-9)


def _lacking(
    rows: Rows,
    slack: Float[np.ndarray, "m"],
    room: Float[np.ndarray, "m"],
    equalities: Equalities,
    close: Bool[np.ndarray, "m"],
) -> Float[np.ndarray, "d e"] | None:
    """The least matrix that is missing to meet equalities, and inequalities with some room.

    None where nothing gives all of them room.
    """
    near = np.flatnonzero(close)
    if not rows.fits(equalities.chosen.size + near.size):
        return None
    missing = np.maximum(-slack[near], 0.0).max(initial=0.0)
    needed = room[near] + _OF_MOVE * missing
    least = needed - slack[near]
    found = _least_norm(rows, slack, equalities, near, least)
    if not (rows.matrix(near) @ found >= least - needed / 2).all():
        support, fits = _least_distance(rows, slack, equalities, near, least)
        if not fits:
            return None
        found = _least_norm(rows, slack, equalities, near[support], least[support])
    return found.reshape(rows.left.shape[1], rows.right.shape[1])


def _without_room(
    rows: Rows, equalities: Equalities, close: Bool[np.ndarray, "m"]
) -> Bool[np.ndarray, "m"]:
    """Inequalities that no matrix that keeps the equalities gives room: they hold as such."""
    tight, near = np.zeros_like(close), np.flatnonzero(close)
    if near.size and rows.fits(near.size):
        nothing = np.zeros_like(rows.bounds)
        support, fits = _least_distance(rows, nothing, equalities, near, rows.norms[near])
        tight[near[support]] = not fits
    return tight


def _least_norm(
    rows: Rows,
    slack: Float[np.ndarray, "m"],
    equalities: Equalities,
    near: Int[np.ndarray, "k"],
    wanted: Float[np.ndarray, "k"],
) -> Float[np.ndarray, "n"]:
    """The least vector that meets equalities and gives some constraints these products."""
    places = np.append(equalities.chosen, near)
    products = np.append(-slack[equalities.chosen], wanted)
    conditioned = Conditioned.of(rows, places) if near.size else equalities.conditioned
    if conditioned is not None:
        return conditioned.least_norm(products)
    return np.linalg.lstsq(rows.matrix(places), products, rcond=DEPENDENT)[0]


def _least_distance(
    rows: Rows,
    slack: Float[np.ndarray, "m"],
    equalities: Equalities,
    near: Int[np.ndarray, "k"],
    least: Float[np.ndarray, "k"],
) -> tuple[Bool[np.ndarray, "k"], bool]:
    """Which constraints hold the least vector that meets equalities and gives them room.

    Where there is no such vector, which are in each other's way, and False (least-distance
    programming, Lawson and Hanson 1974, chapter 23).
    """
    matrix = rows.matrix(near)
    if equalities.conditioned is not None:
        start = _least_norm(rows, slack, equalities, near[:0], least[:0])
        least = least - matrix @ start
        basis = np.linalg.qr(equalities.conditioned.rows.T)[0]
        for _ in range(2):  # once leaves rounding of the part taken out
            matrix = matrix - (matrix @ basis) @ basis.T
    size = np.abs(least).max(initial=0.0) or 1.0
    system = np.vstack([matrix.T, least / size])
    target = np.zeros(len(system))
    target[-1] = 1.0
    try:
        multipliers, left = scipy.optimize.nnls(system, target, maxiter=30 * max(system.shape))
    except RuntimeError:
        return np.zeros(near.size, dtype=bool), False
    return multipliers > 0, bool(left > _NO_ROOM)
