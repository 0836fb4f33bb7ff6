"""Errors averaged over Gaussian queries."""

import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt.finite_length import (
    averaged_error_of_output,
    averaged_output_error,
    error_of_output,
    prompt_moments,
)


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
        (9.0, None, "singular_values"),
    ],
)
def test_wrong_input_is_refused(values, gains, argument):
    with pytest.raises(InvalidInputError) as raised:
        averaged_output_error(values, 100, gains=gains)
    assert raised.value.argument == argument
