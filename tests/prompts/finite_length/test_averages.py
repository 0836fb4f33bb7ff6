"""Errors averaged over Gaussian queries."""

import numpy as np
import pytest
import scipy.stats

from attractor.prompts.finite_length import (
    averaged_error_of_output,
    averaged_output_error,
    error_of_output,
    prompt_moments,
)
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize(("horizon", "limit"), [(0.2, 1.0879), (0.3, 1.2255), (0.5, 2.1213)])
def test_short_horizons_decay_as_one_over_the_length(horizon, limit):
    exact = (1 - horizon**2) * (1 - 2 * horizon**2) ** -1.5
    found = averaged_output_error(horizon, 1e12) * 1e12
    np.testing.assert_allclose(found, [exact, limit], rtol=5e-5)


@pytest.mark.parametrize(
    ("horizon", "slope"),
    [
        (0.5, 1.0),
        (0.85, 0.758),
        pytest.param(1, 0.602, marks=pytest.mark.slow),
        pytest.param(2, 0.236, marks=pytest.mark.slow),
        pytest.param(2.5, 0.176, marks=pytest.mark.slow),
    ],
)
def test_local_slopes_of_long_prompts(horizon, slope):
    near, far = averaged_output_error(horizon, [1e11, 1e12])
    # 0.85 is 0.75719 by quadrature that does not change with the number of nodes.
    np.testing.assert_allclose(np.log10(near / far), slope, atol=1e-3)


def test_one_dimension_by_the_trapezoidal_rule():
    zeta = np.linspace(-9, 9, 91)
    density = 0.2 * np.exp(-(zeta**2) / 2) / np.sqrt(2 * np.pi)
    error = prompt_moments(0.9 * np.abs(zeta), 200).output_error
    np.testing.assert_allclose(averaged_output_error(0.9, 200), density @ error, rtol=1e-9)


def test_two_scales_by_a_grid_of_queries():
    x = np.arange(0, 7.9, 0.5)
    density = 0.5 * np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)
    density[0] /= 2
    first, second = 0.6 * x[:, None], 0.2 * x
    moments = prompt_moments(np.hypot(first, second), 16)
    values = (first**2 + 3 * second**2) * moments.error_per_variance
    values += 4 * moments.sum_of_squared_weights
    found = averaged_output_error([0.2, 0.6], 16, gains=[3, 1])
    np.testing.assert_allclose(found, density @ values @ density, rtol=1e-7)


def test_equal_and_nearly_equal_scales_agree():
    lengths = np.array([3, 1e3])
    equal = averaged_output_error([0.4, 0.4, 0.0], lengths, gains=[1, 2, 5])
    nearly = averaged_output_error([0.4, 0.4 * (1 + 1e-9), 1e-9], lengths, gains=[1, 2, 5])
    np.testing.assert_allclose(nearly, equal, rtol=1e-7)
    rounded = averaged_output_error([0.4, 0.4 * (1 + 1e-15), 1e-17], lengths, gains=[1, 2, 5])
    np.testing.assert_allclose(rounded, equal, rtol=1e-12)


def test_matrices_against_sampled_queries(rng):
    factor, U, V = (rng.standard_normal(shape) for shape in ((3, 3), (3, 2), (2, 3)))
    covariance, query_covariance = factor @ factor.T, np.array([[1.0, 0.3], [0.3, 0.5]])
    z = rng.multivariate_normal(np.zeros(2), query_covariance, 200)
    errors = error_of_output(covariance, 0.1 * U, V, z, 64)
    found = averaged_error_of_output(covariance, 0.1 * U, V, query_covariance, 64)
    assert abs(found - errors.mean()) < 4 * errors.std() / np.sqrt(200)
    assert errors.std() < errors.mean()


@pytest.mark.parametrize(("dimension", "horizon"), [(1, 20.0), (3, 1000.0)])
def test_wide_horizons_of_two_tokens_in_closed_form(dimension, horizon):
    # two tokens put out their mean and d tanh(s d / sqrt 2) / sqrt 2 with d = (g_1 - g_2) / sqrt 2
    x, mass = np.polynomial.legendre.leggauss(60)
    edges = np.concatenate([[0], np.geomspace(1e-7, 12, 25)])
    half = np.diff(edges)[:, None] / 2
    d, weight = ((edges[:-1, None] + half * (x + 1)).ravel(), (half * mass).ravel())
    normal = 2 * weight * scipy.stats.norm.pdf(d)
    radius = weight * scipy.stats.chi(dimension).pdf(d)
    s = horizon * d[:, None]
    tanh = np.tanh(s * d / np.sqrt(2))
    mean, square = (d * tanh) @ normal / np.sqrt(2), 0.5 + (d * tanh) ** 2 @ normal / 2
    along = square - 2 * s[:, 0] * mean + s[:, 0] ** 2
    across = (1 + tanh**2) @ normal / 2
    expected = radius @ (along + (dimension - 1) * across)
    found = averaged_output_error(np.full(dimension, horizon), 2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_beyond_every_length_a_token_is_as_good_as_a_prompt():
    # E (g_max - s)^2, where all that matters is s
    singular, gains = np.array([1e20, 3e19, 0]), np.array([1, 2, 4])
    found = averaged_output_error(singular, 1e12, gains=gains)
    np.testing.assert_allclose(found, gains @ singular**2, rtol=1e-9)


@pytest.mark.parametrize("horizon", [0.3, 40.0])
def test_many_directions_are_those_of_sampled_queries(rng, horizon):
    singular = horizon * np.linspace(0.2, 1, 12)
    gains = np.arange(12.0)
    squares = (singular * rng.standard_normal((100, 12))) ** 2
    s = np.sqrt(squares.sum(1))
    moments = prompt_moments(s, 50)
    errors = (squares @ gains) * moments.error_per_variance
    errors += gains.sum() * moments.sum_of_squared_weights
    found = averaged_output_error(singular, 50, gains=gains)
    assert abs(found - errors.mean()) < 4 * errors.std() / np.sqrt(100)


def test_no_scores_and_one_token():
    np.testing.assert_allclose(averaged_output_error([0, 0], [1, 4], gains=[1, 2]), [3, 0.75])
    np.testing.assert_allclose(averaged_output_error([0.5, 1.0], 1), 2 + 1.25, rtol=1e-8)


@pytest.mark.parametrize(
    ("values", "gains", "argument"),
    [
        ([-1.0], None, "singular_values"),
        ([[1.0]], None, "singular_values"),
        ([], None, "singular_values"),
        ([1.0, 2.0], [1.0], "gains"),
        ([1.0], [-1.0], "gains"),
        (1e21, None, "singular_values"),
    ],
)
def test_wrong_input_is_refused(values, gains, argument):
    with pytest.raises(InvalidInputError) as raised:
        averaged_output_error(values, 100, gains=gains)
    assert raised.value.argument == argument
