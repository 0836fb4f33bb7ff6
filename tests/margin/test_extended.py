from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.margin.batching import extended

seeds = st.integers(0, 2**20)
numbers = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)


def exact(pair):
    return [
        Fraction(float(h)) + Fraction(float(r)) for h, r in zip(*map(np.ravel, pair), strict=True)
    ]


@given(numbers, numbers)
def test_sums_and_products_lose_nothing(a, b):
    (total,) = exact(extended.two_sum(np.array([a]), np.array([b])))
    (product,) = exact(extended.two_product(np.array([a]), np.array([b])))
    assert total == Fraction(a) + Fraction(b)
    assert product == Fraction(a) * Fraction(b)


@given(seeds, st.integers(1, 40))
def test_matrix_product_keeps_its_error_bound(seed, inner):
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(2, inner)) * 10.0 ** rng.uniform(-6, 6, size=(2, inner))
    right = rng.normal(size=(inner, 3)) * 10.0 ** rng.uniform(-6, 6, size=(inner, 3))
    found = exact(extended.matrix_product(left, right))
    for (i, j), value in zip(np.ndindex(2, 3), found, strict=True):
        wanted = sum(
            Fraction(float(a)) * Fraction(float(b))
            for a, b in zip(left[i], right[:, j], strict=True)
        )
        bound = extended.relative_error(inner) * np.abs(left[i]).max() * np.abs(right[:, j]).max()
        assert abs(value - wanted) <= bound


@pytest.mark.parametrize("inner", [2, 3, 4, 16, 64])
def test_matrix_product_keeps_it_where_sums_of_slices_are_largest(inner):
    bits = extended._bits(inner)
    one = 1 - 2.0**-bits + 2.0 ** -(bits + 1) - 2.0 ** -(2 * bits) + 2.0 ** -(2 * bits + 1)
    row = np.full((1, inner), one)
    (found,) = exact(extended.matrix_product(row, row.T))
    assert abs(found - inner * Fraction(one) ** 2) <= extended.relative_error(inner)


def test_cancellation_to_nothing_is_seen():
    # 1e8 and 1e-8 beside each other: float64 loses the answer altogether.
    a = np.array([[1e8, 1.0, -1e8]])
    b = np.array([[1e8], [1e-8], [1e8]])
    high, low = extended.matrix_product(a, b)
    assert high[0, 0] + low[0, 0] == pytest.approx(1e-8, rel=1e-6)
    in_order = sum((a[0] * b[:, 0]).tolist())  # BLAS may add in an order that loses nothing
    assert in_order != pytest.approx(1e-8, rel=1e-6)


@given(seeds)
def test_bilinear_forms_and_outer_sums_are_exact_to_far_beyond_rounding(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    W, low, x = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)) * 1e-17, rng.normal(size=4)
    margins = exact(extended.bilinear(a, (W, low), b))
    for j, value in enumerate(margins):
        wanted = sum(
            Fraction(a[j, r]) * (Fraction(W[r, c]) + Fraction(low[r, c])) * Fraction(b[j, c])
            for r in range(3)
            for c in range(2)
        )
        assert abs(value - wanted) < Fraction(1, 2**70)
    combined = exact(extended.weighted_outer_sum(a, x, b))
    for (r, c), value in zip(np.ndindex(3, 2), combined, strict=True):
        wanted = sum(Fraction(x[j]) * Fraction(a[j, r]) * Fraction(b[j, c]) for j in range(4))
        assert abs(value - wanted) < Fraction(1, 2**70)


def test_inner_product():
    high, low = extended.inner_product(np.array([1e16, 1.0, -1e16]), np.array([1.0, 1.0, 1.0]))
    assert high + low == 1.0


def test_zeros_are_harmless():
    high, low = extended.matrix_product(np.zeros((2, 3)), np.zeros((3, 2)))
    assert not high.any()
    assert not low.any()
