import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt import AttentionHead, Empirical, Gaussian, Rademacher, Sphere, output
from attractor.prompt.length import AffineLimit, replacement_error

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
    for name, length, prompts in (("length", 0, 10), ("length", 2.5, 10), ("prompts", 10, 1)):
        with pytest.raises(InvalidInputError, match=rf"^{name}: "):
            replacement_error(HEAD, TOKENS, QUERIES[0], length, prompts=prompts)


def test_for_gaussian_tokens_replacing_changes_the_output_by_the_exact_error():
    found = replacement_error(HEAD, TOKENS, QUERIES[0], 300, prompts=400)
    assert (found.after < 1e-12).all()
    np.testing.assert_allclose(found.before, found.change, rtol=1e-9)
    resolved = found.resolved
    assert resolved.sum() >= 3
    deviation = (found.change - found.exact_change) / found.change_standard_error
    assert np.abs(deviation[resolved]).max() < 4
    assert (found.change_standard_error[resolved] < 0.1 * found.change[resolved]).all()


def test_for_other_tokens_it_changes_it_by_what_is_not_gaussian():
    head = AttentionHead(np.eye(4), np.eye(4))
    law, z = Sphere(4, 2.0), np.array([[1.5, 0, 0, 0], [0.1, 0, 0, 0]])
    found = replacement_error(head, law, z, 400, prompts=50)
    expected = AffineLimit(head, law)(z) - output(law, head, z)
    np.testing.assert_allclose(found.after, np.linalg.norm(expected, axis=-1), rtol=1e-12)
    assert found.after[0] > 3 * found.before[0] and found.after[1] < 0.1 * found.before[1]
    np.testing.assert_allclose(found.change**2, found.after**2 + found.before**2, rtol=0.15)
    assert not replacement_error(
        AttentionHead(4 * np.eye(2), np.eye(2)), Rademacher(2), np.ones((1, 2)), 50, prompts=2
    ).resolved.any()
