"""Numbers rounded together, so that the sum of vectors that they weigh changes least.

Where entries of constraints differ by many orders of magnitude, multipliers are large and nearly
cancel one another. The nearest floating-point numbers then miss the small sum by far more than
its rounding. Those on the grid of floating point whose sum is near are a close vector of a
lattice, found by lattice reduction (Lenstra, Lenstra and Lovasz 1982; Babai 1986). The entries of
a matrix, whose sums are the margins, are no different.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

_MOST = 16
"""Multipliers that are rounded together; more take too long."""
_BITS = 160
"""Of the largest entry of the lattice that are kept."""
_REACH = {True: 20, False: 50}
"""Binary logarithm of how many units a number may move; far where all of them may be scaled."""


def exact_rows(
    left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
) -> list[list[Fraction]]:
    """The ``a_j b_j^T``, written out and not rounded."""
    return [
        [Fraction(x) * Fraction(y) for x in a for y in b]
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]


def round_together(
    rows: Sequence[Sequence[Fraction]], numbers: Sequence[Fraction], *, keep_scale: bool = False
) -> Float[np.ndarray, "m"]:
    """Floating-point numbers near the given ones, whose sum is near theirs, or a multiple.

    Args:
        rows: Vectors, summed with the numbers as weights. An entry of the sum that matters less
            is smaller in all of them.
        numbers: The numbers; where one is zero it stays so.
        keep_scale: Whether a sum near a multiple of theirs will not do.
    """
    nearest = np.array([float(x) for x in numbers])
    held = np.flatnonzero(nearest).tolist()
    if not 0 < len(held) <= _MOST:
        return nearest
    # Twice the spacing, so that a larger number is a multiple as well.
    spacing = [2 * Fraction(math.ulp(nearest[j])) for j in held]
    exact = [numbers[j] / unit for j, unit in zip(held, spacing, strict=True)]
    count = [round(x) for x in exact]
    vectors = [[unit * f for f in rows[j]] for j, unit in zip(held, spacing, strict=True)]
    moves = _closest(vectors, exact, count, keep_scale=keep_scale)
    rounded = nearest.copy()
    rounded[held] = [float((n + k) * u) for n, k, u in zip(count, moves, spacing, strict=True)]
    return rounded if (rounded * nearest >= 0).all() else nearest


def _closest(
    vectors: list[list[Fraction]], exact: list[Fraction], count: list[int], *, keep_scale: bool
) -> list[int]:
    """Whole numbers to add to a count, so that vectors add up to nearly the exact sum."""
    n, size = len(vectors), max(abs(entry) for vector in vectors for entry in vector)
    if not size:
        return [0] * n
    columns = [*zip(*vectors, strict=True)]
    total = [_dot(exact, column) for column in columns]
    rest = [y - _dot(count, column) for y, column in zip(total, columns, strict=True)]
    square = 0 if keep_scale else _dot(total, total)
    scale, weight = Fraction(2**_BITS) / size, 2 ** (_BITS - _REACH[keep_scale])

    def across(vector: list[Fraction]) -> list[int]:
        """A vector less its part along the total, as multiples of the sum are as good."""
        share = _dot(vector, total) / square if square else Fraction(0)
        return [round(scale * (x - share * y)) for x, y in zip(vector, total, strict=True)]

    lattice = _Lattice()
    for i, vector in enumerate(vectors):
        lattice.insert(across(vector) + [weight * (i == k) for k in range(n)])
    lattice.append(across(rest) + [0] * n)
    return [-number // weight for number in lattice.vectors[-1][len(total) :]]


class _Lattice:
    """A reduced basis of whole numbers, and its orthogonalization (Cohen 1993, section 2.6).

    Attributes:
        vectors: The basis.
    """

    def __init__(self) -> None:
        """Begins with no vector."""
        self.vectors: list[list[int]] = []
        self._products: list[list[int]] = []
        self._determinants = [1]

    def insert(self, vector: list[int]) -> None:
        """Takes a vector in where its length belongs, and with it those that it displaces."""
        waiting = [vector]
        while waiting:
            self.append(waiting.pop())
            if len(self.vectors) > 1 and self._is_out_of_order():
                waiting += reversed([self._pop(), self._pop()])

    def append(self, vector: list[int]) -> None:
        """Takes a vector in at the end, less what makes it shorter of those before."""
        products: list[int] = []
        determinants = self._determinants
        for other, of_other in zip(self.vectors, self._products, strict=True):
            products.append(self._orthogonal(_dot(vector, other), products, of_other))
        last = self._orthogonal(_dot(vector, vector), products, products)
        for k in reversed(range(len(products))):
            times = (2 * products[k] + determinants[k + 1]) // (2 * determinants[k + 1])
            pairs = zip(vector, self.vectors[k], strict=True)
            vector = [x - times * y for x, y in pairs]
            products[k] -= times * determinants[k + 1]
            for i, product in enumerate(self._products[k]):
                products[i] -= times * product
        self.vectors.append(vector)
        self._products.append(products)
        determinants.append(last)

    def _orthogonal(self, product: int, first: list[int], second: list[int]) -> int:
        """A product of two vectors less what those before them have of it, times a determinant."""
        before = self._determinants
        for i, (x, y) in enumerate(zip(first, second, strict=False)):
            product = (before[i + 1] * product - x * y) // before[i]
        return product

    def _is_out_of_order(self) -> bool:
        """Whether the last vector is much shorter than the one before it, next to the others."""
        *_, before, middle, last = self._determinants
        return 4 * (last * before + self._products[-1][-1] ** 2) < 3 * middle**2

    def _pop(self) -> list[int]:
        """Takes the last vector out."""
        self._products.pop()
        self._determinants.pop()
        return self.vectors.pop()


def _dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))
