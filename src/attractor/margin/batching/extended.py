"""Products of float64 arrays beyond working precision, from error-free transformations.

A value is a pair (high, low) of float64 arrays whose exact sum is meant. No step relies on a
wider hardware type, so results are the same on every platform.

Two-sum and two-product are Knuth's and Dekker's. Matrix products follow Ozaki, Ogita, Oishi and
Rump (2012): operands are cut into slices of so few bits that every product of two slices is
exact in float64, and the exact products are then added.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

Pair: TypeAlias = tuple[np.ndarray, np.ndarray]

_SLICES = 4
_SPLITTER = 134217729.0  # 2^27 + 1


def two_sum(a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."]) -> Pair:
    """The rounded sum and, exactly, what rounding it left out."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def two_product(a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."]) -> Pair:
    """The rounded product and, exactly, what rounding it left out."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    low = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, low


def add(pair: Pair, high: Float[np.ndarray, "..."], low: Float[np.ndarray, "..."] | float) -> Pair:
    """The pair plus (high, low)."""
    total, error = two_sum(pair[0], high)
    return two_sum(total, error + (pair[1] + low))


def relative_error(inner: int) -> float:
    """Error of ``matrix_product`` over an inner axis of that length, relative to its operands."""
    return 4.0 * inner * 2.0 ** (-_SLICES * _bits(inner))


def matrix_product(
    left: Float[np.ndarray, "*batch rows inner"], right: Float[np.ndarray, "*batch inner columns"]
) -> Pair:
    """``left @ right`` as a pair.

    The error of entry (i, j) is below ``relative_error(inner) max|left_i| max|right_j|``, where
    max runs over the inner axis.
    """
    inner = left.shape[-1]
    bits = _bits(inner)
    left_slices, left_exponent = _slices(left, -1, bits)
    right_slices, right_exponent = _slices(right, -2, bits)
    # Side by side, products of one order are added up as they are multiplied, exactly as well: all
    # slices but the first have one bit less, so that sums stay below 2^53.
    beside, below = np.concatenate(left_slices, -1), np.concatenate(right_slices[::-1], -2)
    result = None
    for order in range(_SLICES - 1, -1, -1):  # smallest terms first
        last, first = (order + 1) * inner, (_SLICES - 1 - order) * inner
        exact = beside[..., :last] @ below[..., first:, :]
        term = exact * 2.0 ** (-bits * (order + 2))
        result = (term, np.zeros_like(term)) if result is None else add(result, term, 0.0)
    assert result is not None
    exponent = left_exponent + right_exponent
    return np.ldexp(result[0], exponent), np.ldexp(result[1], exponent)


def bilinear(
    left: Float[np.ndarray, "*batch m d"],
    W: Pair,
    right: Float[np.ndarray, "*batch m e"],
) -> Pair:
    """``a_j^T W b_j`` for every row as a pair, W being a pair itself."""
    image = matrix_product(left, W[0])
    image = add(image, left @ W[1], 0.0)
    high, low = two_product(image[0], right)
    low = low + image[1] * right
    zero = np.zeros(high.shape[:-1])
    total = (zero, zero)
    for column in range(high.shape[-1]):
        total = add(total, high[..., column], low[..., column])
    return total


def weighted_outer_sum(
    left: Float[np.ndarray, "*batch m d"],
    weights: Float[np.ndarray, "*batch m"],
    right: Float[np.ndarray, "*batch m e"],
) -> Pair:
    """``sum_j weights_j a_j b_j^T`` as a pair."""
    high, low = two_product(weights[..., None], right)
    turned = np.swapaxes(left, -1, -2)
    return add(matrix_product(turned, high), turned @ low, 0.0)


def inner_product(a: Float[np.ndarray, "*batch m"], b: Float[np.ndarray, "*batch m"]) -> Pair:
    """``sum_j a_j b_j`` as a pair."""
    high, low = matrix_product(a[..., None, :], b[..., :, None])
    return high[..., 0, 0], low[..., 0, 0]


def _bits(inner: int) -> int:
    """Bits of a slice such that sums of that many products of two slices are exact."""
    return (52 - math.ceil(math.log2(max(inner, 2)))) // 2


def _split(a: Float[np.ndarray, "..."]) -> Pair:
    """A number as the sum of two that have 26 bits each."""
    shifted = _SPLITTER * a
    high = shifted - (shifted - a)
    return high, a - high


def _slices(
    array: Float[np.ndarray, "..."], axis: int, bits: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Integers of ``bits`` bits with ``array = 2^exponent sum_p 2^(-bits (p+1)) slice_p``."""
    largest = np.abs(array).max(axis=axis, keepdims=True)
    exponent = np.frexp(largest)[1]
    rest = np.ldexp(array, -exponent)  # at most one
    slices = []
    for _ in range(_SLICES):
        rest = rest * 2.0**bits
        whole = np.rint(rest)
        rest = rest - whole
        slices.append(whole)
    return slices, exponent
