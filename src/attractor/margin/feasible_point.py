"""A matrix that meets all constraints exactly, near one that meets them to rounding.

W of floating-point numbers mostly meets equalities to rounding alone, and likewise bounds that no
scaling of W meets. It is moved by some D beyond working precision, with a cushion under each
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
import scipy.linalg
from jaxtyping import Bool, Float, Int

from attractor.geometry import Geometry
from attractor.margin import extended
from attractor.margin.exact import follows_exactly
from attractor.margin.scaling import ScaledConstraints

_ROUNDING = np.finfo(np.float64).eps / 2
_CUSHION = 8.0
"""Slack that inequalities are given, in units of the error that it is known with."""
_OF_MOVE = 2.0**-40
"""The same, as a share of the largest shortfall."""
_DEPENDENT = 1e-14
"""Distance of an equality from the span of others, relative to its norm, that may be none."""
_NO_ROOM = 1e-9
"""Largest norm of rows that cancel, where all are about one."""
_SHARE = 1e-9
"""Coefficient of a row in another below which it has no part in it."""
_MOST_ENTRIES = 30_000_000
"""Entries of explicit constraints up to which they are formed."""
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
        rest = self.radius + 2 * _ROUNDING * _length(moved) * bool(self.move.any())
        known = float(geometry.norm(moved)) * (1 + geometry.norm_rounding(*W.shape))
        return (known + rest * norm_constant(geometry, *W.shape)) * (1 + 4 * _ROUNDING)

    @property
    def distance(self) -> float:
        """An upper bound on its distance from W, in the Frobenius norm."""
        return (_length(self.move) + self.radius) * (1 + 4 * _ROUNDING)


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
    rows = _Rows.of(scaled, i)
    if rows is None:
        return None
    held, cured = rows.equality.copy(), curable[rows.slots]
    close, move = np.zeros_like(held), np.zeros_like(W)
    for _ in range(_ROUNDS):
        equalities = _Equalities.of(rows, held)
        if equalities is None:
            return None
        for _ in range(_ROUNDS):
            slack, doubt = rows.slack(W, move)
            radius = equalities.radius(np.abs(slack) + doubt)
            least = slack - doubt - radius * rows.norms
            short = ~held & ~cured & ~(least >= 0)
            if not short.any() and np.isfinite(radius):
                every = np.full(scaled.bounds.shape[-1], np.inf)
                every[rows.slots] = least
                return FeasiblePoint(move, radius, every)
            close |= short
            room = _CUSHION * (doubt + equalities.radius(doubt) * rows.norms)
            further = rows.lacking(slack, room, held, close & ~held)
            if further is None:
                break
            move = move + further
        tight = rows.without_room(held, close & ~held)
        if not tight.any():
            return None
        held |= tight
    return None


@functools.lru_cache(maxsize=256)
def norm_constant(geometry: Geometry, rows: int, columns: int) -> float:
    """A k with ``||X|| <= k ||X||_F`` for matrices of a shape: ``(sum_ij ||E_ij||^2)^(1/2)``."""
    square = 0.0
    for row in range(rows):
        units = np.zeros((columns, rows, columns))
        units[np.arange(columns), row, np.arange(columns)] = 1.0
        square += float((geometry.norm(units) ** 2).sum())
    return float(np.sqrt(square)) * (1 + 1e-9)


@dataclass(frozen=True)
class _Rows:
    """The constraints of one instance that a matrix may fall short of.

    Attributes:
        left: Scaled ``a``.
        right: Scaled ``b``.
        bounds: Scaled ``c``.
        unknown: Bound on the rounding of c.
        equality: Which are equalities.
        norms: ``||a_j|| ||b_j||``.
        slots: The slot of each.
    """

    left: Float[np.ndarray, "m d"]
    right: Float[np.ndarray, "m e"]
    bounds: Float[np.ndarray, "m"]
    unknown: Float[np.ndarray, "m"]
    equality: Bool[np.ndarray, "m"]
    norms: Float[np.ndarray, "m"]
    slots: Int[np.ndarray, "m"]

    @classmethod
    def of(cls, scaled: ScaledConstraints, i: int) -> _Rows | None:
        """Those of an instance; None where some hold for no matrix."""
        one = scaled.choose(np.s_[i : i + 1])
        if one.impossible.any():
            return None
        low, high = one.given_range
        slots = np.flatnonzero(one.nonzero[0] & np.isfinite(one.given[0]))
        names = one.left, one.right, one.given, high - low, one.equality, one.norms
        return cls(*(array[0, slots] for array in names), slots)

    def slack(
        self, W: Float[np.ndarray, "d e"], move: Float[np.ndarray, "d e"]
    ) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
        """``a_j^T (W + move) b_j - c_j``, and a bound on the error."""
        moved = extended.two_sum(W, move)
        pair = extended.bilinear(self.left, moved, self.right)
        total, rest = extended.add(pair, -self.bounds, 0.0)
        width = max(W.shape)
        doubt = 2 * extended.relative_error(width) * _length(moved[0])
        doubt += 2 * (width + 4) * _ROUNDING * _length(moved[1])
        return total, (np.abs(rest) + doubt * self.norms) * (1 + 1e-9) + self.unknown

    def matrix(self, chosen: Bool[np.ndarray, "m"]) -> Float[np.ndarray, "k n"]:
        """Some of them as rows, rounded."""
        left, right = self.left[chosen], self.right[chosen]
        return _outer(left[:, :, None] * right[:, None, :])

    def lacking(
        self,
        slack: Float[np.ndarray, "m"],
        room: Float[np.ndarray, "m"],
        held: Bool[np.ndarray, "m"],
        close: Bool[np.ndarray, "m"],
    ) -> Float[np.ndarray, "d e"] | None:
        """The least matrix that is missing to meet equalities, and inequalities with some room.

        None where nothing gives all of them room.
        """
        d, e = self.left.shape[1], self.right.shape[1]
        if (held.sum() + close.sum()) * d * e > _MOST_ENTRIES:
            return None
        missing = np.maximum(-slack[close], 0.0).max(initial=0.0)
        room = room[close] + _OF_MOVE * missing
        fixed, wanted = self.matrix(held), -slack[held]
        rows, least = self.matrix(close), room - slack[close]
        size = max(np.abs(wanted).max(initial=0.0), np.abs(least).max(initial=0.0))
        if not size > 0:
            return np.zeros((d, e))
        wanted, least, slight = wanted / size, least / size, room / size / 2
        found = _least_norm(np.concatenate([fixed, rows]), np.concatenate([wanted, least]))
        if not (rows @ found >= least - slight).all():
            support, fits = _least_distance(fixed, wanted, rows, least)
            if not fits:
                return None
            found = _least_norm(
                np.concatenate([fixed, rows[support]]), np.concatenate([wanted, least[support]])
            )
        return (size * found).reshape(d, e)

    def without_room(
        self, held: Bool[np.ndarray, "m"], close: Bool[np.ndarray, "m"]
    ) -> Bool[np.ndarray, "m"]:
        """Inequalities that no matrix that keeps the equalities gives room: they hold as such."""
        tight = np.zeros_like(close)
        places = np.flatnonzero(close)
        if places.size:
            fixed, rows = self.matrix(held), self.matrix(close)
            support, fits = _least_distance(
                fixed, np.zeros(len(fixed)), rows, np.ones(len(rows)) * self.norms[close]
            )
            tight[places[support]] = not fits
        return tight


def _outer(products: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k n"]:
    """Matrices as rows."""
    return products.reshape(len(products), products.shape[1] * products.shape[2])


def _least_norm(
    rows: Float[np.ndarray, "k n"], wanted: Float[np.ndarray, "k"]
) -> Float[np.ndarray, "n"]:
    """The least vector with these products, or whose products are nearest to them."""
    return np.linalg.lstsq(rows, wanted, rcond=1e-15)[0]


def _least_distance(
    fixed: Float[np.ndarray, "k n"],
    wanted: Float[np.ndarray, "k"],
    rows: Float[np.ndarray, "m n"],
    least: Float[np.ndarray, "m"],
) -> tuple[Bool[np.ndarray, "m"], bool]:
    """Which rows the least vector x with ``fixed x = wanted`` and ``rows x >= least`` rests on.

    Where there is no such vector, which rows are in each other's way, and False (least-distance
    programming, Lawson and Hanson 1974, chapter 23).
    """
    from scipy.optimize import nnls

    start = _least_norm(fixed, wanted) if len(fixed) else np.zeros(rows.shape[1])
    lacking = least - rows @ start
    if len(fixed):
        basis, triangle, _ = scipy.linalg.qr(fixed.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(triangle))
        basis = basis[:, diagonal > _DEPENDENT * diagonal[0]]
        for _ in range(2):  # once leaves rounding of the part taken out
            rows = rows - (rows @ basis) @ basis.T
    size = np.abs(lacking).max(initial=0.0) or 1.0
    system = np.vstack([rows.T, lacking / size])
    target = np.zeros(len(system))
    target[-1] = 1.0
    try:
        multipliers, left = nnls(system, target, maxiter=30 * max(system.shape))
    except RuntimeError:
        return np.zeros(len(rows), dtype=bool), False
    return multipliers > 0, left > _NO_ROOM


@dataclass(frozen=True)
class _Equalities:
    """The independent equalities of an instance, from which all others follow exactly.

    Attributes:
        chosen: The independent ones.
        reach: Bound on the Frobenius norm of a matrix whose products with them are one in the
            Euclidean norm.
    """

    chosen: Int[np.ndarray, "k"]
    reach: float

    @classmethod
    def of(cls, rows: _Rows, held: Bool[np.ndarray, "m"]) -> _Equalities | None:
        """None where others do not follow from the independent ones."""
        places = _without_copies(rows, np.flatnonzero(held))
        if not places.size:
            return cls(places, 0.0)
        if places.size * rows.left.shape[1] * rows.right.shape[1] > _MOST_ENTRIES:
            return None
        matrix = rows.matrix(places)
        basis, triangle, order = scipy.linalg.qr(matrix.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(triangle))
        rank = int((diagonal > _DEPENDENT * diagonal[0]).sum())
        chosen = places[order[:rank]]
        for j in order[rank:]:
            shares = _least_norm(matrix[order[:rank]].T, matrix[j])
            parts = np.append(chosen[np.abs(shares) > _SHARE], places[j])
            if rows.unknown[parts].any() or not follows_exactly(
                rows.left[parts], rows.right[parts], rows.bounds[parts]
            ):
                return None
        try:
            inverse = basis[:, :rank] @ np.linalg.inv(triangle[:rank, :rank]).T
        except np.linalg.LinAlgError:
            return None
        size = float(np.linalg.norm(inverse))
        defect = _defect(rows, chosen, inverse)
        return cls(chosen, size / (1 - defect) * (1 + 1e-9)) if defect < 1 else None

    def radius(self, off: Float[np.ndarray, "m"]) -> float:
        """How far a matrix lies at most from one that meets them, given by how much it is off."""
        return self.reach * _length(off[self.chosen]) * (1 + 1e-9) if self.chosen.size else 0.0


def _without_copies(rows: _Rows, places: Int[np.ndarray, "k"]) -> Int[np.ndarray, "k"]:
    """Constraints less those that are others, perhaps with both sides negated."""
    signs = [
        np.sign(part[np.arange(len(part)), (part != 0).argmax(1)])
        for part in (rows.left[places], rows.right[places])
    ]
    columns = [
        rows.left[places] * signs[0][:, None],
        rows.right[places] * signs[1][:, None],
        (rows.bounds[places] * signs[0] * signs[1])[:, None],
    ]
    _, first = np.unique(np.concatenate(columns, axis=1) + 0.0, axis=0, return_index=True)
    return places[np.sort(first)]


def _defect(rows: _Rows, chosen: Int[np.ndarray, "k"], inverse: Float[np.ndarray, "n k"]) -> float:
    """An upper bound on ``||I - A G||_F``, A the constraints chosen and G as given."""
    matrix, size = rows.matrix(chosen), float(np.linalg.norm(inverse))
    width = len(inverse) + 4
    off = float(np.linalg.norm(matrix @ inverse - np.eye(len(matrix))))
    bound = off * (1 + 1e-9) + 2 * width * _ROUNDING * float(np.linalg.norm(matrix)) * size
    if bound < 0.5:
        return bound
    full = np.broadcast_arrays(rows.left[chosen][:, :, None], rows.right[chosen][:, None, :])
    high, low = map(_outer, extended.two_product(*full))
    product = extended.matrix_product(high, inverse)
    off = float(np.linalg.norm(product[0] - np.eye(len(matrix)) + product[1] + low @ inverse))
    largest = float(np.abs(high).max(1).sum() * np.abs(inverse).max(0).sum())
    missed = extended.relative_error(len(inverse)) * largest
    missed += 2 * width * _ROUNDING * (float(np.linalg.norm(low)) * size + off)
    return off * (1 + 1e-9) + missed


def _length(entries: Float[np.ndarray, "..."]) -> float:
    """An upper bound on the Euclidean norm of entries that are neither huge nor tiny together."""
    largest = float(np.abs(entries).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(((entries / largest) ** 2).sum())) * (1 + 1e-9)
