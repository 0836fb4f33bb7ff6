"""The exponent at which errors of long prompts vanish."""

import numpy as np
import pytest

from attractor.prompts.finite_length import (
    averaged_output_error,
    error_exponent,
    finite_length_exponent,
)
from attractor.support.errors import InvalidInputError


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


def by_minimizing(log_probability, longest):
    """Local exponents by finite differences of the minimum over a grid of score variances."""

    def minimum(log_length):
        tau = np.geomspace(1e-3, 4, 400_001)
        frozen = np.where(tau <= 2, (1 - tau / 2) ** 2 / (2 * tau), 0)
        e = np.where(tau <= 2 / 3, 1 - tau, frozen)
        return (log_length * e - log_probability(tau * log_length)).min()

    step = 1e-3
    at = np.log(longest)
    return (minimum(at * (1 + step)) - minimum(at * (1 - step))) / (2 * step * at)


@pytest.mark.parametrize(("count", "horizon"), [(1, 1.0), (8, 1.0), (64, 0.7), (64, 0.3)])
@pytest.mark.parametrize("length", [1e4, 1e12, 1e60])
def test_local_exponents_minimize_the_rate_of_equal_directions(count, horizon, length):
    def log_probability(x):
        over = x / (count * horizon**2)
        return np.where(over > 1, -count * (over - 1 - np.log(over)) / 2, 0)

    expected = by_minimizing(log_probability, length)
    found = finite_length_exponent(np.full(count, horizon), length)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_few_directions_have_the_exponent_of_the_widest_in_the_limit():
    for horizon in (0.3, 0.9, 2.0):
        limit = error_exponent(horizon)
        found = finite_length_exponent([horizon, horizon / 2, 0], [1e6, 1e12, 1e60])
        assert (np.diff(np.abs(found - limit)) <= 1e-12).all()
        np.testing.assert_allclose(found[-1], limit, atol=0.02)


def test_as_many_directions_as_the_logarithm_of_the_length_do_not_depend_on_it():
    found = [finite_length_exponent(np.full(n, 0.9), np.exp(2 * n)) for n in (4, 8, 32)]
    np.testing.assert_allclose(found, found[0], rtol=1e-9)
    assert 0.1 < found[0] < error_exponent(0.9) - 0.2


@pytest.mark.parametrize(("count", "horizon"), [(64, 0.3), (16, 0.9)])
def test_exact_errors_of_many_directions_have_the_local_exponent_and_not_the_limit(count, horizon):
    singular = np.full(count, horizon)
    near, far = averaged_output_error(singular, [3e3, 3e4])
    exact = np.log10(near / far)
    found = finite_length_exponent(singular, 1e4)
    assert abs(found - exact) < 0.25
    assert abs(found - exact) < abs(error_exponent(horizon) - exact) / 1.5


def test_exponents_without_scores_and_of_frozen_ones():
    np.testing.assert_array_equal(finite_length_exponent([0.0, 0.0], [1, 9, 1e60]), 1)
    for tiny in (1e-30, 1e-160, 1e-320):
        np.testing.assert_allclose(finite_length_exponent(tiny, [2, 1e60]), 1)
    np.testing.assert_array_equal(finite_length_exponent(np.full(600, 5.0), [1, 1e12]), 0)
    assert finite_length_exponent(1e20, 1e60) < 1e-30


@pytest.mark.parametrize(
    ("singular", "length", "argument"),
    [([-1.0], 10, "singular_values"), ([1e21], 10, "singular_values"), ([1.0], 0.5, "length")],
)
def test_wrong_input_of_local_exponents_is_refused(singular, length, argument):
    with pytest.raises(InvalidInputError) as raised:
        finite_length_exponent(singular, length)
    assert raised.value.argument == argument
