"""Averages that the error of the weighted covariance is made of."""

import numpy as np
import pytest

from attractor.prompts.finite_length import covariance_moments, mean_output


def of_prompts(s, g):
    """The six quantities of prompts along the last axis."""
    p = np.exp(s * g - (s * g).max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    h = g - (p * g).sum(-1, keepdims=True)
    v, q = (p * h**2).sum(-1), (p**2).sum(-1)
    matrix = -p[..., :, None] * p[..., None, :]
    matrix[..., range(g.shape[-1]), range(g.shape[-1])] += p
    frobenius = (matrix**2).sum((-2, -1))
    return np.stack([v, (v - 1) ** 2, (v - 1) * q, (p**2 * h**2).sum(-1), q**2, frobenius])


@pytest.mark.parametrize(
    ("s", "length", "step"), [(0.02, 2, 0.2), (1, 2, 0.1), (4, 2, 0.05), (0.5, 3, 0.25)]
)
def test_few_tokens_by_direct_quadrature(s, length, step):
    g = np.arange(-9, 9 + step, step)
    density = step * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)
    weights = np.prod(np.meshgrid(*[density] * length, indexing="ij"), axis=0)
    values = of_prompts(s, np.stack(np.meshgrid(*[g] * length, indexing="ij"), -1))
    expected = (weights * values).reshape(6, -1).sum(-1)
    np.testing.assert_allclose(covariance_moments(s, length), expected, rtol=1e-10)


@pytest.mark.parametrize(("s", "length"), [(2.0, 30), (3.0, 8)])
def test_sampled_prompts(s, length, rng):
    sampled = of_prompts(s, rng.standard_normal((4000, length)))
    error = sampled.std(1) / np.sqrt(4000)
    assert (np.abs(sampled.mean(1) - covariance_moments(s, length)) < 4 * error).all()


@pytest.mark.parametrize("s", [0.4, 1.0, 1.5])
def test_long_prompts_follow_the_delta_rule(s):
    length = 1e12
    found = covariance_moments(s, length)
    scale = np.exp(s**2) / length
    np.testing.assert_allclose(found.variance_error, scale * (s**4 + 4 * s**2 + 2), rtol=1e-6)
    np.testing.assert_allclose(found.squared_deviations, scale * (1 + s**2), rtol=1e-6)
    np.testing.assert_allclose(found.covariance_of_weights, scale, rtol=1e-6)
    np.testing.assert_allclose(found.squared_weights_squared, scale**2, rtol=1e-6)


def test_no_scores_are_a_sample_variance():
    lengths = np.array([1, 2, 10, 1e6])
    exact = np.array(covariance_moments(0, lengths))
    np.testing.assert_array_equal(exact[1], (2 * lengths - 1) / lengths**2)
    np.testing.assert_allclose(covariance_moments(1e-9, lengths), exact, rtol=1e-12)


def test_one_token_has_no_covariance():
    for s in (0.0, 0.5, 6.0):
        np.testing.assert_array_equal(covariance_moments(s, 1), [0, 1, -1, 0, 1, 0])


def test_weighted_variance_is_the_slope_of_the_output():
    s, step, lengths = 2.0, 1e-3, np.array([5, 1e3, 1e8])
    slope = (mean_output(s + step, lengths) - mean_output(s - step, lengths)) / (2 * step)
    np.testing.assert_allclose(covariance_moments(s, lengths).mean_variance, slope, rtol=1e-5)
