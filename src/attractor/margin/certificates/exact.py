"""Integer combinations of constraints that cancel exactly, near multipliers of floating point.

Constraints are rows of float64 numbers, which are integers times powers of two. Systems are solved
modulo a prime and lifted digit by digit (Dixon 1982), so that entries stay small until the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

_MOST_CONSTRAINTS = 600
"""So many are combined in some twenty seconds; the time grows with the cube of their number."""
_PRIME = 134217689
"""The largest below 2^27: products of residues can be added 512 times in 64 bits."""
_LIMB = 24
"""Bits of integers at a time: products with residues can be added 4,096 times in 64 bits."""


def exact_multipliers(
    left: Float[np.ndarray, "m d"],
    right: Float[np.ndarray, "m e"],
    bounds: Float[np.ndarray, "m"],
    equality: Bool[np.ndarray, "m"],
    multipliers: Float[np.ndarray, "m"],
) -> list[int] | None:
    """Integers with ``sum x_j a_j b_j^T = 0`` and ``sum c_j x_j > 0``, both exactly.

    Rounded multipliers leave a matrix sum of the size of rounding. If the constraints that carry
    a multiplier do contradict each other as they are stored, the equation has solutions close by;
    unknowns that it leaves free keep their value.

    Args:
        left: The ``a_j``.
        right: The ``b_j``.
        bounds: The ``c_j``.
        equality: Where multipliers may be negative.
        multipliers: Farkas multipliers of working precision; zero in empty slots.

    Returns:
        One integer a constraint, not negative on inequalities; None where there is no such
        contradiction near the multipliers, or where more than 600 constraints carry one.
    """
    used = np.flatnonzero(multipliers)
    if not 0 < used.size <= _MOST_CONSTRAINTS:
        return None
    rows, shift, c = _exactly(left[used], right[used], bounds[used])
    x, x_shift = _integers(multipliers[used, None])
    found = _null_vector(rows, _common(x[:, 0], -(x_shift + shift)))
    if found is None:
        return None
    exact = _common(found, shift)
    if (rows.T @ found).any() or ((exact < 0) & ~equality[used]).any():
        return None
    if not sum(c * exact) > 0:
        return None
    result = [0] * multipliers.size
    for j, value in zip(used, exact, strict=True):
        result[j] = value
    return result


def follows_exactly(
    left: Float[np.ndarray, "k d"], right: Float[np.ndarray, "k e"], bounds: Float[np.ndarray, "k"]
) -> bool:
    """Whether the last of these equalities is a combination of the others, exactly."""
    if len(left) > _MOST_CONSTRAINTS:
        return False
    rows, shift, c = _exactly(left, right, bounds)
    found = _null_vector(rows, np.array([0] * (len(left) - 1) + [1], dtype=object))
    if found is None or not found[-1] or (rows.T @ found).any():
        return False
    return sum(c * _common(found, shift)) == 0


def _exactly(
    left: Float[np.ndarray, "k d"], right: Float[np.ndarray, "k e"], bounds: Float[np.ndarray, "k"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ``2^shift_j a_j b_j^T`` as rows of integers, the shifts, and bounds as integers.

    Bounds are multiplied by one power of two for all.
    """
    a, a_shift = _integers(left)
    b, b_shift = _integers(right)
    c, c_shift = _integers(bounds[:, None])
    rows = (a[:, :, None] * b[:, None, :]).reshape(len(left), -1)
    return rows, a_shift + b_shift, _common(c[:, 0], -c_shift)


def _integers(rows: Float[np.ndarray, "k n"]) -> tuple[np.ndarray, np.ndarray]:
    """Rows times ``2^shift`` as arrays of Python's integers, and the shifts."""
    ratios = [[x.as_integer_ratio() for x in row] for row in rows.tolist()]
    shifts = [max(q.bit_length() for _, q in row) - 1 for row in ratios]
    whole = [[(n << shift) // q for n, q in row] for row, shift in zip(ratios, shifts, strict=True)]
    return np.array(whole, dtype=object).reshape(rows.shape), np.array(shifts, dtype=object)


def _common(values: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """``values * 2^exponents`` times the power of two that makes all of them integers."""
    least = min(exponents)
    return np.array(
        [v << (e - least) for v, e in zip(values, exponents, strict=True)], dtype=object
    )


def _null_vector(rows: np.ndarray, near: np.ndarray) -> np.ndarray | None:
    """Integers, near some up to a common factor, that combine rows of integers to zero.

    None if only zeros do, or, hardly ever, if the prime hides it: the answer wants checking.
    """
    entries = np.array([entry for entry in rows.T if entry.any()], dtype=object)
    if not len(entries):
        return near
    which, pivots, inverse = _pivots(entries)
    free = np.setdiff1d(np.arange(len(rows)), pivots)
    if not free.size:
        return None
    found = near.copy()
    if pivots.size:
        square = entries[np.ix_(which, pivots)]
        wanted = -(entries[np.ix_(which, free)] @ near[free])
        numerators, denominator = _solve(square, inverse, wanted)
        found[free] *= denominator
        found[pivots] = numerators
    return found // math.gcd(*found)


def _pivots(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of a largest block with an inverse modulo the prime, and that inverse."""
    count = entries.shape[1]
    rest = (entries % _PRIME).astype(np.int64)
    order = np.arange(len(rest))
    pivots: list[int] = []
    for j in range(count):
        i = len(pivots)
        candidates = np.flatnonzero(rest[i:, j])
        if not candidates.size:
            continue
        swap, back = [i, i + candidates[0]], [i + candidates[0], i]
        rest[swap], order[swap] = rest[back], order[back]
        factors = rest[i + 1 :, j] * pow(int(rest[i, j]), -1, _PRIME) % _PRIME
        rest[i + 1 :] = (rest[i + 1 :] - factors[:, None] * rest[i]) % _PRIME
        pivots.append(j)
    which, columns = order[: len(pivots)], np.array(pivots)
    return which, columns, _inverse(entries[np.ix_(which, columns)] % _PRIME)


def _inverse(square: np.ndarray) -> np.ndarray:
    """The inverse modulo the prime of a matrix that has one (Gauss and Jordan)."""
    size = len(square)
    both = np.concatenate([square.astype(np.int64), np.eye(size, dtype=np.int64)], axis=1)
    for i in range(size):
        k = i + np.flatnonzero(both[i:, i])[0]
        both[[i, k]] = both[[k, i]]
        both[i] = both[i] * pow(int(both[i, i]), -1, _PRIME) % _PRIME
        factors = both[:, i].copy()
        factors[i] = 0
        both = (both - factors[:, None] * both[i]) % _PRIME
    return both[:, size:]


def _solve(square: np.ndarray, inverse: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, int]:
    """Numerators, and their denominator, of the exact solution of a system of integers.

    Digits of the solution to the base of the prime, one a step, cost a product with the matrix
    each. Hadamard's bound says how many settle the fractions.
    """
    augmented = np.concatenate([square, wanted[:, None]], axis=1)
    bits = sum((sum(v * v for v in row) or 1).bit_length() // 2 + 1 for row in augmented)
    limbs = _limbs(square)
    digits = []
    for _ in range(2 * bits // (_PRIME.bit_length() - 1) + 2):
        digit = _product(inverse, (wanted % _PRIME).astype(np.int64))
        digits.append(digit)
        image = sum((limb @ digit).astype(object) << (_LIMB * i) for i, limb in enumerate(limbs))
        wanted = (wanted - image) // _PRIME
    value, modulus = _joined(digits), _PRIME ** len(digits)
    denominator, most = 1, math.isqrt(modulus // 2)
    for entry in value:
        denominator *= _denominator(entry * denominator % modulus, modulus, most)
    numerators = value * denominator % modulus
    return np.where(2 * numerators > modulus, numerators - modulus, numerators), denominator


def _limbs(matrix: np.ndarray) -> list[np.ndarray]:
    """Matrices of 64-bit integers, the i-th times ``2^(24 i)``, that add up to one of integers."""
    rest: Any = abs(matrix)
    signs = np.where(matrix < 0, -1, 1)
    limbs = []
    while not limbs or rest.any():
        limbs.append((rest & ((1 << _LIMB) - 1)).astype(np.int64) * signs.astype(np.int64))
        rest = rest >> _LIMB
    return limbs


def _product(matrix: np.ndarray, residues: np.ndarray) -> np.ndarray:
    """A matrix of residues times a vector of them, modulo the prime."""
    total = np.zeros(len(matrix), dtype=np.int64)
    for i in range(0, len(residues), 512):
        total += matrix[:, i : i + 512] @ residues[i : i + 512] % _PRIME
    return total % _PRIME


def _joined(digits: list[np.ndarray]) -> np.ndarray:
    """The numbers with these digits to the base of the prime, lowest first.

    Neighbors are joined first: long numbers are multiplied by long ones alone.
    """
    numbers, base = [digit.astype(object) for digit in digits], _PRIME
    while len(numbers) > 1:
        if len(numbers) % 2:
            numbers.append(np.zeros_like(numbers[0]))
        numbers = [low + high * base for low, high in zip(numbers[::2], numbers[1::2], strict=True)]
        base *= base
    return numbers[0]


def _denominator(residue: int, modulus: int, most: int) -> int:
    """The denominator of the fraction of small terms that has that residue (Wang 1981)."""
    if min(residue, modulus - residue) <= most:
        return 1
    rest, last, factor, before = residue, modulus, 1, 0
    while rest > most:
        quotient = last // rest
        rest, last = last - quotient * rest, rest
        factor, before = before - quotient * factor, factor
    return abs(factor)
