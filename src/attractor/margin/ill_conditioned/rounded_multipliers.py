"""Multipliers rounded so that what they combine the constraints to changes least.

Where entries of constraints differ by many orders of magnitude, multipliers are large and nearly
cancel one another. The nearest floating-point numbers then miss the small sum by far more than
its rounding. Those on the grid of floating point whose sum is near are a close vector of a
lattice, found by lattice reduction (Lenstra, Lenstra and Lovasz 1982; Babai 1986).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Float

_MOST = 16
"""Multipliers that are rounded together; more take too long."""
_BITS = 160
"""Of the largest entry of the lattice that are kept."""
_SHIFT = 64
"""Binary places by which a unit of a multiplier counts for less than what it moves."""


def exact_rows(
    left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
) -> list[list[Fraction]]:
    """The ``a_j b_j^T``, written out and not rounded."""
    return [
        [Fraction(x) * Fraction(y) for x in a for y in b]
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]


def round_multipliers(
    rows: Sequence[Sequence[Fraction]], multipliers: Sequence[Fraction]
) -> Float[np.ndarray, "m"]:
    """Floating-point numbers near the multipliers, whose ``sum_j x_j rows_j`` is near theirs.

    Args:
        rows: The constraints.
        multipliers: The multipliers; where one is zero it stays so.
    """
    nearest = np.array([float(x) for x in multipliers])
    held = np.flatnonzero(nearest)
    if not 0 < len(held) <= _MOST:
        return nearest
    # Twice the spacing, so that a larger number is a multiple as well.
    spacing = [2 * Fraction(math.ulp(nearest[j])) for j in held]
    count = [round(multipliers[j] / unit) for j, unit in zip(held, spacing, strict=True)]
    vectors = [[unit * f for f in rows[j]] for j, unit in zip(held, spacing, strict=True)]
    rest = [
        sum((multipliers[j] - n * unit) * rows[j][k] for j, n, unit in zip(held, count, spacing))
        for k in range(len(rows[0]))
    ]
    moves = _closest(vectors, rest)
    rounded = nearest.copy()
    rounded[held] = [float((n + k) * u) for n, k, u in zip(count, moves, spacing, strict=True)]
    return rounded if (rounded * nearest >= 0).all() else nearest


def _closest(vectors: list[list[Fraction]], target: list[Fraction]) -> list[int]:
    """Whole numbers with which vectors add up to nearly the target."""
    size, n = max(abs(entry) for vector in vectors for entry in vector), len(vectors)
    scale, weight = Fraction(2**_BITS) / size, 2 ** (_BITS - _SHIFT)
    lattice = _Lattice()
    for i, vector in enumerate(vectors):
        numbers = [weight * (i == k) for k in range(n)]
        lattice.insert([round(scale * entry) for entry in vector] + numbers)
    lattice.append([round(scale * entry) for entry in target] + [0] * n)
    return [-number // weight for number in lattice.vectors[-1][len(target) :]]


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
        for i, (x, y) in enumerate(zip(first, second)):
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


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))
