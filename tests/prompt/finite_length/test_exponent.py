"""The exponent at which errors of long prompts vanish."""

import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt.finite_length import error_exponent


def test_known_values():
    horizons = [0, 0.5, 0.85, 1, 2, 2.5]
    expected = [1, 1, 0.778, (np.sqrt(5) - 1) / 2, (np.sqrt(2) - 1) / 2, 0.140]
    np.testing.assert_allclose(error_exponent(horizons), expected, atol=5e-4)


def test_it_is_continuous_and_falls_like_an_inverse_square():
    threshold = np.sqrt(0.5)
    np.testing.assert_allclose(error_exponent(threshold * (1 + 1e-9)), 1, rtol=1e-8)
    np.testing.assert_allclose(error_exponent(1e9), 1e-18, rtol=1e-12)
    assert (np.diff(error_exponent(np.linspace(threshold, 9, 50))) < 0).all()


def test_it_minimizes_the_exponents_of_score_variances():
    def at(tau):
        frozen = np.where(tau <= 2, (1 - tau / 2) ** 2 / (2 * tau), 0)
        return np.where(tau <= 2 / 3, 1 - tau, frozen)

    tau = np.linspace(1e-6, 4, 200_001)
    for H in (0.3, 0.72, 0.9, 1.5, 3):
        np.testing.assert_allclose((tau / (2 * H**2) + at(tau)).min(), error_exponent(H), rtol=1e-5)


def test_a_negative_horizon_is_refused():
    with pytest.raises(InvalidInputError, match="negative"):
        error_exponent(-1)
