"""The constraints of one instance as rows: which are independent, and who lies how far from them.

Near-parallel rows A are replaced by ``T A`` with a triangular T without zeros on its diagonal,
which is computed beyond working precision: its rows are nearly orthonormal however near to each
other those of A are, and a matrix meets the one set of equalities where it meets the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float, Int

from attractor.margin.batching import extended
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.exact import follows_exactly

_ROUNDING = np.finfo(np.float64).eps / 2
DEPENDENT = 1e-14
"""Distance of a constraint from the span of others, relative to its norm, that may be none."""
_SHARE = 1e-9
"""Coefficient of a row in another below which it has no part in it."""
_MOST_ENTRIES = 30_000_000
"""Entries of explicit constraints up to which they are formed."""
_MOST_ERROR = 1e-6
"""Error of orthonormal rows from which on they are noise: A has dependent rows."""
_WELL_CONDITIONED = 1e6
"""Size of T up to which working precision does."""


@dataclass(frozen=True)
class Rows:
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
    def of(cls, scaled: ScaledConstraints, i: int) -> Rows | None:
        """Those of an instance; None where some hold for no matrix."""
        one = scaled.choose(np.s_[i : i + 1])
        if one.impossible.any():
            return None
        low, high = one.given_range
        slots = np.flatnonzero(one.nonzero[0] & np.isfinite(one.given[0]))
        left, right, bounds, unknown, equality, norms = (
            array[0, slots]
            for array in (one.left, one.right, one.given, high - low, one.equality, one.norms)
        )
        return cls(left, right, bounds, unknown, equality, norms, slots)

    def slack(
        self, W: Float[np.ndarray, "d e"], move: Float[np.ndarray, "d e"]
    ) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
        """``a_j^T (W + move) b_j - c_j``, and a bound on the error."""
        moved = extended.two_sum(W, move)
        pair = extended.bilinear(self.left, moved, self.right)
        total, rest = extended.add(pair, -self.bounds, 0.0)
        width = max(W.shape)
        doubt = 2 * extended.relative_error(width) * length(moved[0])
        doubt += 2 * (width + 4) * _ROUNDING * length(moved[1])
        touched = (self.left != 0) @ ((W != 0) | (move != 0)) & (self.right != 0)
        doubt = doubt * np.where(touched.any(1), self.norms, 0.0)  # else a sum of zeros
        return total, (np.abs(rest) + doubt) * (1 + 1e-9) + self.unknown

    def matrix(self, chosen: np.ndarray) -> Float[np.ndarray, "k n"]:
        """Some of them as rows, rounded."""
        return _as_rows(self.left[chosen][:, :, None] * self.right[chosen][:, None, :])

    def fits(self, count: int) -> bool:
        """Whether so many rows are few enough to be written out."""
        return count * self.left.shape[1] * self.right.shape[1] <= _MOST_ENTRIES


@dataclass(frozen=True)
class Conditioned:
    """Rows A of some constraints, and ``T A``, whose rows are far from parallel.

    Attributes:
        transform: T, which has an inverse.
        rows: ``T A``, rounded.
        error: Bound on the Frobenius norm of what rounding it left out.
    """

    transform: Float[np.ndarray, "k k"]
    rows: Float[np.ndarray, "k n"]
    error: float

    @classmethod
    def of(cls, rows: Rows, chosen: Int[np.ndarray, "k"]) -> Conditioned | None:
        """None where they are dependent, or next to it."""
        full = np.broadcast_arrays(rows.left[chosen][:, :, None], rows.right[chosen][:, None, :])
        high, low = map(_as_rows, extended.two_product(*full))
        k, n = high.shape
        result = cls(np.eye(k), high, float(np.linalg.norm(low)) * (1 + 1e-9))
        if k > n:
            return None
        for _ in range(2):  # the second after what near-parallel rows leave to the first
            triangle = np.linalg.qr(result.rows.T, mode="r")
            if not np.abs(np.diag(triangle)).all():
                return None
            turned = scipy.linalg.solve_triangular(triangle, np.eye(k)).T @ result.transform
            size = float(np.linalg.norm(turned))
            if not np.isfinite(size):
                return None
            if size <= _WELL_CONDITIONED:
                error = 2 * (k + 4) * _ROUNDING * size * float(np.linalg.norm(high))
                return cls(turned, turned @ high, error * (1 + 1e-9))
            pair = extended.matrix_product(turned, high)
            found = pair[0] + (pair[1] + turned @ low)
            error = extended.relative_error(k) * _product_of_sizes(turned, high)
            error += (
                2
                * (k + 4)
                * _ROUNDING
                * (float(np.linalg.norm(found)) + size * float(np.linalg.norm(low)))
            )
            result = cls(turned, found, error * (1 + 1e-9))
        return result if result.error <= _MOST_ERROR else None

    def least_norm(self, wanted: Float[np.ndarray, "k"]) -> Float[np.ndarray, "n"]:
        """The least vector with these products, nearly."""
        turned = extended.matrix_product(self.transform, wanted[:, None])
        return self.rows.T @ (turned[0] + turned[1])[:, 0]


@dataclass(frozen=True)
class Equalities:
    """The independent equalities of an instance, from which all others follow exactly.

    Attributes:
        chosen: The independent ones.
        conditioned: These rows; None where there are none.
        reach: Bound on the Frobenius norm of a matrix whose products with the rows ``T A`` are
            one in the Euclidean norm.
    """

    chosen: Int[np.ndarray, "k"]
    conditioned: Conditioned | None
    reach: float

    @classmethod
    def of(cls, rows: Rows, held: Bool[np.ndarray, "m"]) -> Equalities | None:
        """None where others do not follow from the independent ones."""
        places = _without_copies(rows, np.flatnonzero(held))
        if not places.size:
            return cls(places, None, 0.0)
        if not rows.fits(places.size):
            return None
        matrix = rows.matrix(places)
        factors: Any = scipy.linalg.qr(matrix.T, mode="r", pivoting=True)
        triangle, order = factors
        diagonal = np.abs(np.diag(triangle))
        rank = int((diagonal > DEPENDENT * diagonal[0]).sum())
        chosen = places[order[:rank]]
        nearly = []
        for j in order[rank:]:
            shares = np.linalg.lstsq(matrix[order[:rank]].T, matrix[j], rcond=None)[0]
            parts = np.append(chosen[np.abs(shares) > _SHARE], places[j])
            if rows.unknown[parts].any() or not follows_exactly(
                rows.left[parts], rows.right[parts], rows.bounds[parts]
            ):
                nearly.append(j)
        chosen = np.append(chosen, places[nearly])
        conditioned = Conditioned.of(rows, chosen)
        if conditioned is None:
            return None
        orthonormal = conditioned.rows  # nearly, so that its transpose is nearly its inverse
        k, n = orthonormal.shape
        size = float(np.linalg.norm(orthonormal)) * (1 + 1e-9)
        off = float(np.linalg.norm(orthonormal @ orthonormal.T - np.eye(k)))
        rounding = 2 * (n + 4) * _ROUNDING * size
        defect = (off + (rounding + conditioned.error) * size) * (1 + 1e-9)
        if not defect < 1:
            return None
        return cls(chosen, conditioned, size / (1 - defect) * (1 + 1e-9))

    def radius(self, slack: Float[np.ndarray, "m"], doubt: Float[np.ndarray, "m"]) -> float:
        """How far a matrix lies at most from one that meets them, given by how much it is off."""
        if self.conditioned is None:
            return 0.0
        T, off, error = self.conditioned.transform, slack[self.chosen], doubt[self.chosen]
        high, low = extended.matrix_product(T, off[:, None])
        missed = extended.relative_error(len(off)) * _product_of_sizes(T, off[:, None])
        missed += float(np.linalg.norm(np.abs(T) @ error)) * (1 + 1e-9)
        return self.reach * (length(high) + length(low) + missed) * (1 + 1e-9)


def _without_copies(rows: Rows, places: Int[np.ndarray, "k"]) -> Int[np.ndarray, "k"]:
    """Constraints less those that are others, perhaps with sides negated."""
    left, right, bounds = rows.left[places], rows.right[places], rows.bounds[places]
    of_left, of_right = first_signs(left), first_signs(right)
    columns = [
        left * of_left[:, None],
        right * of_right[:, None],
        (bounds * of_left * of_right)[:, None],
    ]
    _, first = np.unique(np.concatenate(columns, axis=1) + 0.0, axis=0, return_index=True)
    return places[np.sort(first)]


def first_signs(rows: Float[np.ndarray, "k n"]) -> Float[np.ndarray, "k"]:
    """The sign of the first entry of each row that is not zero."""
    return np.sign(rows[np.arange(len(rows)), (rows != 0).argmax(1)])


def _as_rows(matrices: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k n"]:
    return matrices.reshape(len(matrices), matrices.shape[1] * matrices.shape[2])


def _product_of_sizes(left: Float[np.ndarray, "k l"], right: Float[np.ndarray, "l n"]) -> float:
    """``(sum_ij (max |left_i| max |right_j|)^2)^(1/2)``, rounded up."""
    largest = length(np.abs(left).max(1, initial=0.0)) * length(np.abs(right).max(0, initial=0.0))
    return largest * (1 + 1e-9)


def length(entries: Float[np.ndarray, "..."]) -> float:
    """An upper bound on the Euclidean norm of entries that are neither huge nor tiny together."""
    largest = float(np.abs(entries).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(((entries / largest) ** 2).sum())) * (1 + 1e-9)
