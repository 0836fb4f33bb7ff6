import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from attractor.prompts.regression.attended import chi_squared, triangular_factors
from attractor.support.precision import double_precision

KEY = np.array([5, 1], np.uint32)
COUNT = 20_000


def test_chi_squared_numbers_have_their_law():
    degrees = np.array([2, 3, 17, 1000])
    with double_precision():
        drawn = np.asarray(
            jax.jit(chi_squared, static_argnums=1)(jnp.asarray(KEY), COUNT, jnp.asarray(degrees))
        )
    for column, degree in zip(drawn.T, degrees, strict=True):
        assert stats.kstest(column, stats.chi2(degree).cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(drawn.T) - np.eye(4)).max() < 0.04


@pytest.mark.parametrize("length", [*(pytest.param(n, marks=pytest.mark.slow) for n in (2, 50)), 3])
def test_factors_square_to_wishart_matrices(length):
    with double_precision():
        factors = np.asarray(
            jax.jit(triangular_factors, static_argnums=(1, 2, 3))(
                jnp.asarray(KEY), COUNT, length, 3
            )
        )
    drawn = np.swapaxes(factors, -1, -2) @ factors
    assert factors.shape == (COUNT, min(length, 3), 3)
    np.testing.assert_allclose(drawn.mean(0), length * np.eye(3), atol=6 * length**0.5 / 100)
    variances = length * (np.ones((3, 3)) + np.eye(3))
    np.testing.assert_allclose(drawn.var(0), variances, rtol=0.15)
    direction = np.array([1, 2, -2]) / 3  # every direction sees a chi-squared number
    seen = np.einsum("i,pij,j->p", direction, drawn, direction)
    assert stats.kstest(seen, stats.chi2(length).cdf).pvalue > 1e-3
    if length >= 3:  # the determinant is a product of three
        logs = np.linalg.slogdet(drawn)[1]
        rng = np.random.default_rng(0)
        expected = np.log(rng.chisquare(length - np.arange(3), (COUNT, 3))).sum(1)
        assert stats.ks_2samp(logs, expected).pvalue > 1e-3
