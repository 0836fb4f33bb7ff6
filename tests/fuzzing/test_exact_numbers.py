"""Exact sums and fifty digits, against mpmath and fractions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from fuzzing.exact_numbers import CONTEXT, Exact, conjugate, matrix_norm, singular_values


def as_fractions(matrix):
    return [[Fraction(n) * Fraction(2) ** matrix.exponent for n in row] for row in matrix.rows]


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 1e-310])
def test_floats_are_taken_as_they_are(scale, rng):
    array = rng.normal(size=(3, 4)) * scale * 10.0 ** rng.uniform(-8, 8, size=4)
    array[1, 2] = 0.0
    assert as_fractions(Exact.of(array)) == [[Fraction(x) for x in row] for row in array.tolist()]
    assert not any(Exact.of(np.zeros((2, 2))).entries())


def test_a_difference_loses_nothing(rng):
    one, other = rng.normal(size=(2, 2)), rng.normal(size=(2, 2)) * 1e-40
    difference = as_fractions(Exact.of(one).minus(Exact.of(other)))
    for i, j in np.ndindex(2, 2):
        assert difference[i][j] == Fraction(one[i, j]) - Fraction(other[i, j])


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 2), (4, 4), (3, 7)])
def test_singular_values_have_fifty_digits(shape, rng):
    array = rng.normal(size=shape)
    assert_singular_values(array)
    assert_singular_values(array * 1e-200)


def test_singular_values_that_are_equal_tiny_or_zero(rng):
    turned = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert_singular_values(turned)
    assert_singular_values(np.diag([1.0, 1.0, 1e-30, 0.0]))
    assert_singular_values(turned * np.array([1.0, 1e-9, 1e-18, 1e-27]))
    assert singular_values(Exact.of(np.zeros((2, 3)))) == [0, 0]


def assert_singular_values(array):
    with mpmath.workprec(220):
        least = array if array.shape[0] >= array.shape[1] else array.T
        wanted = sorted(mpmath.svd_r(mpmath.matrix(least.tolist()), compute_uv=False))[::-1]
        found = [mpmath.mpf(s) for s in singular_values(Exact.of(array))]
        assert max(abs(f - w) for f, w in zip(found, wanted, strict=True)) <= wanted[0] * 1e-55


@pytest.mark.parametrize("p", [1, 1.1, 1.5, 2, 3, 10, math.inf])
def test_norms_to_fifty_digits(p, rng):
    array = rng.normal(size=(3, 3))
    with mpmath.workprec(220):
        entries = [abs(mpmath.mpf(x)) for x in array.ravel().tolist()]
        wanted = (
            max(entries) if p == math.inf else sum(x**p for x in entries) ** (1 / mpmath.mpf(p))
        )
        assert abs(mpmath.mpf(matrix_norm(Exact.of(array), "entrywise", p)) / wanted - 1) < 1e-50
        values = mpmath.svd_r(mpmath.matrix(array.tolist()), compute_uv=False)
        wanted = max(values) if p == math.inf else sum(x**p for x in values) ** (1 / mpmath.mpf(p))
        assert abs(mpmath.mpf(matrix_norm(Exact.of(array), "schatten", p)) / wanted - 1) < 1e-50


def test_exponents_of_dual_norms():
    assert conjugate(1) == math.inf
    assert conjugate(math.inf) == 1
    assert conjugate(1.5) == 3
    assert abs(1 / conjugate(1.1) + 1 / CONTEXT.mpf(1.1) - 1) < 1e-55
