"""Powers against arithmetic with many digits."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.geometry.exponent import positive_power

EXPONENTS = (0.5, 1.0, 1.5, 2.0, 2.5, 7 / 3, 3.5, 4.5, 0.75)
SIZES = np.array([0.0, 5e-324, 1e-300, 1e-80, 1e-3, 1 / 3, 1.0, 2.5, 1e5, 1e60])


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("xp", [np, jnp])
def test_powers_are_exact_to_a_few_roundings(exponent, xp):
    with jax.enable_x64(True), mpmath.workdps(40):
        found = np.asarray(positive_power(xp.asarray(SIZES), exponent))
        for size, value in zip(SIZES, found, strict=True):
            truth = mpmath.mpf(float(size)) ** mpmath.mpf(exponent)
            if xp is jnp and 0 < size < 1e-307:
                continue  # XLA counts numbers below the normal ones as zero
            allowed = 4 * max(float(np.spacing(float(truth))), 5e-324)
            assert abs(truth - mpmath.mpf(float(value))) <= allowed, (size, value)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_of_what_is_not_finite(exponent):
    found = positive_power(np.array([math.inf, math.nan]), exponent)
    assert found[0] == math.inf and np.isnan(found[1])
