import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.prompts import AffineLimit, AttentionHead, Empirical, Gaussian, output
from attractor.support.errors import InvalidInputError

RNG = np.random.default_rng(3)
HEAD = AttentionHead(RNG.normal(size=(3, 2)) / 2, RNG.normal(size=(4, 3)))
ROOT = RNG.normal(size=(3, 2))
TOKENS = Gaussian(np.ones(3), ROOT @ ROOT.T)
QUERIES = RNG.normal(size=(2, 5, 2))


def test_it_is_attention_over_gaussian_tokens_even_with_a_singular_covariance():
    limit = AffineLimit(HEAD, TOKENS)
    assert limit(QUERIES).shape == (2, 5, 4) and limit(QUERIES).dtype == np.float64
    np.testing.assert_allclose(limit(QUERIES), output(TOKENS, HEAD, QUERIES), atol=1e-13)
    np.testing.assert_allclose(limit(np.zeros(2)), HEAD.value_matrix @ np.ones(3), atol=1e-15)


def test_it_stands_in_the_place_of_a_head_under_jax():
    limit = AffineLimit(HEAD, TOKENS)
    z = jnp.asarray(QUERIES[0])
    inside = jax.jit(lambda head, law, z: jax.vmap(AffineLimit(head, law))(z))(HEAD, TOKENS, z)
    np.testing.assert_allclose(inside, limit(QUERIES[0]), rtol=2e-5)
    slope = jax.jacobian(limit)(z[0])
    np.testing.assert_allclose(slope, limit.matrix, rtol=1e-5)


def test_samples_have_the_limit_of_their_moments():
    points = RNG.normal(size=(40, 3))
    limit = AffineLimit(HEAD, Empirical(points))
    moments = Gaussian(points.mean(0), np.cov(points.T, bias=True))
    np.testing.assert_allclose(limit.matrix, AffineLimit(HEAD, moments).matrix, rtol=1e-10)


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"^tokens: their dimension is 2"):
        AffineLimit(HEAD, Gaussian.isotropic(2))
    with pytest.raises(InvalidInputError, match=r"^query: .*\(\.\.\., 2\)"):
        AffineLimit(HEAD, TOKENS)(np.zeros(3))
