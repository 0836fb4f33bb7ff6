"""Exact sums of products of floats, and norms to fifty digits.

Floats are integers times powers of two. Sums and products are taken of the integers, so that
nothing is lost to cancellation; only roots and powers are rounded, at the 200th binary digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul
from typing import Any

import mpmath
import numpy as np

CONTEXT = mpmath.MPContext()
CONTEXT.prec = 200
_BITS = 260
"""Binary digits of the entries of a matrix whose singular values are taken."""


@dataclass(frozen=True)
class Exact:
    """A matrix: integers times ``2^exponent``."""

    rows: list[list[int]]
    exponent: int

    @classmethod
    def of(cls, array: np.ndarray) -> Exact:
        """The matrix, or the vector as a matrix of one row, that floats are."""
        array = np.atleast_2d(np.asarray(array, dtype=float))
        mantissas, exponents = np.frexp(array)
        exponents = exponents.astype(int) - 53
        least = int(exponents[array != 0].min(initial=0 if not array.any() else 5000))
        integers = np.ldexp(mantissas, 53).astype(np.int64).tolist()
        shifts = np.where(array != 0, exponents - least, 0).tolist()
        rows = [
            [n << s for n, s in zip(row, shift, strict=True)]
            for row, shift in zip(integers, shifts, strict=True)
        ]
        return cls(rows, least)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.rows[0])

    def entries(self) -> list[int]:
        """The integers, row by row."""
        return [n for row in self.rows for n in row]

    def minus(self, other: Exact) -> Exact:
        """The difference of two matrices."""
        least = min(self.exponent, other.exponent)
        left, right = self.exponent - least, other.exponent - least
        return Exact(
            [
                [(x << left) - (y << right) for x, y in zip(r, t, strict=True)]
                for r, t in zip(self.rows, other.rows, strict=True)
            ],
            least,
        )


def number(integer: int, exponent: int = 0) -> mpmath.mpf:
    """``integer 2^exponent``, rounded to 200 binary digits."""
    return CONTEXT.ldexp(CONTEXT.mpf(integer), exponent)


def inner(left: list[int], right: list[int]) -> int:
    """The inner product of two vectors of integers."""
    return sum(map(mul, left, right))


def root_of_squares(integers: list[int], exponent: int = 0) -> mpmath.mpf:
    """The Euclidean length of a vector."""
    return CONTEXT.sqrt(number(inner(integers, integers), 2 * exponent))


def conjugate(p: float) -> mpmath.mpf:
    """The exponent of the dual norm."""
    if p == 1:
        return CONTEXT.inf
    return CONTEXT.mpf(1) if p == math.inf else CONTEXT.mpf(p) / (CONTEXT.mpf(p) - 1)


def dual_of(family: str, p: Any) -> tuple[str, Any]:
    """The dual of a norm, in the same terms: see ``matrix_norm``."""
    if family not in ("maximum", "sum"):
        return family, conjugate(p)
    blocks = tuple(
        (rows, columns, 1 / CONTEXT.mpf(weight), *dual_of(*norm))
        for rows, columns, weight, *norm in p
    )
    return "sum" if family == "maximum" else "maximum", blocks


def vector_norm(entries: list[mpmath.mpf], p: mpmath.mpf | float) -> mpmath.mpf:
    """The l_p norm."""
    sizes = [abs(x) for x in entries if x]
    if not sizes:
        return CONTEXT.mpf(0)
    most = max(sizes)
    if p == math.inf:
        return most
    p = CONTEXT.mpf(p)
    return most * CONTEXT.fsum((x / most) ** p for x in sizes) ** (1 / p)


def matrix_norm(matrix: Exact, family: str, p: Any) -> mpmath.mpf:
    """The l_p norm of the entries, or of the singular values where the family is Schatten.

    In the families "maximum" and "sum", that of the norms of blocks times their weights: p are the
    blocks, each with the ends of its rows and columns, a weight, a family and its p.
    """
    if family in ("maximum", "sum"):
        sizes = []
        for rows, columns, weight, *norm in p:
            block = [row[slice(*columns)] for row in matrix.rows[slice(*rows)]]
            own = matrix_norm(Exact(block, matrix.exponent), *norm)
            sizes.append(CONTEXT.mpf(weight) * own)
        return max(sizes) if family == "maximum" else CONTEXT.fsum(sizes)
    if p == 2:
        return root_of_squares(matrix.entries(), matrix.exponent)
    if family == "schatten":
        return vector_norm(singular_values(matrix), p)
    if family != "entrywise":
        raise ValueError(f"unknown family of norms {family!r}")
    if p == 1:
        return number(sum(map(abs, matrix.entries())), matrix.exponent)
    return vector_norm([number(n, matrix.exponent) for n in matrix.entries()], p)


def singular_values(matrix: Exact) -> list[mpmath.mpf]:
    """Singular values in descending order, right to about 1e-60 of the largest.

    One-sided Jacobi rotations (Hestenes 1958) in fixed point, begun from the singular vectors
    that float64 gives, made orthogonal to all digits: hardly more than one sweep is left to do.
    """
    columns = [list(c) for c in zip(*matrix.rows, strict=True)]
    if len(columns) > len(matrix.rows):
        columns = [list(row) for row in matrix.rows]
    largest = max((abs(n) for c in columns for n in c), default=0)
    if largest == 0:
        return [CONTEXT.mpf(0)] * len(columns)
    shift = _BITS - largest.bit_length()
    columns = [[_shifted(n, shift) for n in c] for c in columns]
    turned = _turned(columns)
    one, settled = 1 << _BITS, (1 << 2 * _BITS) >> 215
    for _ in range(60):
        moved = False
        for i in range(len(turned)):
            for j in range(i + 1, len(turned)):
                product = inner(turned[i], turned[j])
                if abs(product) > settled:
                    _rotate(turned, i, j, product, one)
                    moved = True
        if not moved:
            break
    else:
        raise ArithmeticError("Jacobi rotations did not settle")
    exponent = matrix.exponent - shift
    return sorted((root_of_squares(c, exponent) for c in turned), reverse=True)


def _shifted(n: int, shift: int) -> int:
    return n << shift if shift >= 0 else n >> -shift


def _turned(columns: list[list[int]]) -> list[list[int]]:
    """``X V`` with V orthogonal to all digits and close to the right singular vectors."""
    size = len(columns)
    floats = np.array([[float(n >> (_BITS - 60)) for n in c] for c in columns]).T
    try:
        V = np.linalg.svd(floats, full_matrices=False)[2]
    except np.linalg.LinAlgError:
        return columns
    rows = [[int(v * 2.0**60) << (_BITS - 60) for v in row] for row in V]
    three = 3 << _BITS
    for _ in range(4):  # Newton and Schulz: V (3 - V^T V) / 2, each twice as many digits
        gram = [[inner(r, t) >> _BITS for t in rows] for r in rows]
        step = [[three * (i == j) - g for j, g in enumerate(r)] for i, r in enumerate(gram)]
        across = list(zip(*rows, strict=True))
        rows = [[inner(s, c) >> (_BITS + 1) for c in across] for s in step]
    if len(rows) != size:
        return columns
    across = list(zip(*columns, strict=True))
    return [[inner(x, v) >> _BITS for x in across] for v in rows]


def _rotate(columns: list[list[int]], i: int, j: int, product: int, one: int) -> None:
    """Turns two columns until they are orthogonal."""
    x, y = columns[i], columns[j]
    apart, twice = inner(y, y) - inner(x, x), 2 * product
    length = math.isqrt(apart * apart + twice * twice)
    tangent = (twice << _BITS) // (apart + length if apart >= 0 else apart - length)
    cosine = one * one // math.isqrt(one * one + tangent * tangent)
    sine = cosine * tangent >> _BITS
    columns[i] = [(cosine * u - sine * v) >> _BITS for u, v in zip(x, y, strict=True)]
    columns[j] = [(sine * u + cosine * v) >> _BITS for u, v in zip(x, y, strict=True)]
