"""The three ways to draw what is attended to have one law, and the tokens say which."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from attractor.precision import double_precision
from attractor.prompt.regression import attended
from attractor.prompt.regression.drawing import token_normals

COUNT, D = 4096, 4


@functools.cache
def compiled(draw):
    return jax.jit(draw, static_argnums=(3, 4))


def drawn(draw, scores, values, length, *, seed=0, count=COUNT, dtype="float64"):
    """Mean and slope for many prompts with the same functionals, as NumPy arrays."""
    scores, values = (np.atleast_2d(np.asarray(f, np.float64)) for f in (scores, values))
    with double_precision():
        shape = (count, *scores.shape)
        found = compiled(draw)(
            jnp.array([seed, 3], jnp.uint32),
            jnp.broadcast_to(scores, shape),
            jnp.broadcast_to(values, shape),
            length,
            dtype,
        )
        return np.asarray(found.mean), np.asarray(found.slope)


def test_softmax_of_tokens_is_the_softmax_of_its_tokens():
    rng = np.random.default_rng(0)
    g, v = rng.standard_normal((2, 2, D - 1))
    mean, slope = drawn(attended.softmax_of_tokens, g, v, 7, count=3)
    with double_precision():
        tokens = token_normals(jnp.array([0, 3], jnp.uint32), jnp.arange(3), 2, 7)
    tokens = np.asarray(tokens, np.float64)[:, : D - 1]
    p = np.exp(np.einsum("he,pel->phl", g, tokens))
    p /= p.sum(-1, keepdims=True)
    expected = np.einsum("phl,pel->phe", p, tokens)
    np.testing.assert_allclose(mean, expected, atol=1e-14)
    second = np.einsum("phl,pel,pfl->phef", p, tokens, tokens)
    covariance = second - expected[..., None] * expected[..., None, :]
    np.testing.assert_allclose(slope, np.einsum("phef,hf->phe", covariance, v), atol=1e-13)


CASES = {
    "generic": ([0.9, -0.4, 0.3, 0.2], [0.2, 0.7, -0.5, 0.4], 6),
    "even": ([0.4, 0.4, 0.0, 0.1], [1.0, 0.0, 0.0, 0.0], 6),
    "sharp": ([3.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], 6),
    "parallel": ([1.0, 1.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0], 6),
    "no scores": ([0.0] * 4, [0.3, 0.1, 0.0, 0.5], 6),
    "no values": ([0.5, 0.1, 0.0, 0.5], [0.0] * 4, 6),
    "one token": ([0.5, 0.1, 0.0, 0.5], [0.3, 0.1, 0.0, 0.5], 1),
}


@pytest.mark.parametrize("g, v, length", CASES.values(), ids=CASES)
def test_projections_have_the_law_of_tokens(g, v, length):
    same_law(attended.softmax_of_tokens, attended.softmax_of_projections, g, v, length)


@pytest.mark.parametrize("name", ["generic", "one token"])
def test_moments_have_the_law_of_tokens(name):
    same_law(attended.linear_of_tokens, attended.linear_of_moments, *CASES[name])


def same_law(one, other, g, v, length):
    """Compares outputs, gradients, and directions that mix them."""
    rng = np.random.default_rng(1)
    left, right = (
        np.concatenate([part[:, 0] for part in drawn(draw, g, v, length, seed=seed)], axis=1)
        for draw, seed in ((one, 1), (other, 2))
    )
    assert np.isfinite(left).all() and np.isfinite(right).all()
    error = 5 / COUNT**0.5
    scale = np.maximum(left.std(0), 1e-9)
    np.testing.assert_allclose(left.mean(0) / scale, right.mean(0) / scale, atol=2 * error)
    moments = [np.einsum("pi,pj->ij", a / scale, a / scale) / COUNT for a in (left, right)]
    np.testing.assert_allclose(*moments, atol=5 * error, rtol=0.15)
    for direction in [*np.eye(2 * D), *rng.standard_normal((6, 2 * D))]:
        seen = [a @ direction for a in (left, right)]
        if max(np.ptp(values) for values in seen) > 1e-9:
            assert stats.ks_2samp(*seen).pvalue > 1e-4


def test_a_wrong_law_is_told_apart():
    with pytest.raises(AssertionError):
        g, v, length = CASES["generic"]
        other = lambda k, g, v, n, dtype: attended.softmax_of_projections(k, 1.3 * g, v, n, dtype)  # noqa: E731
        same_law(attended.softmax_of_tokens, other, g, v, length)


def test_scores_of_any_size_give_finite_numbers():
    for draw in (attended.softmax_of_tokens, attended.softmax_of_projections):
        for size in (1e-20, 1e3):
            g, v, _ = CASES["generic"]
            mean, slope = drawn(draw, np.multiply(g, size), v, 6, dtype="float32", count=64)
            assert np.isfinite(mean).all() and np.isfinite(slope).all()


def test_many_prompts_are_drawn_in_parts(monkeypatch):
    g, v, length = CASES["generic"]
    whole = drawn(attended.softmax_of_tokens, g, v, length, count=24)
    monkeypatch.setattr(attended, "_NUMBERS_AT_ONCE", 7 * D * length)
    parts = drawn(lambda *a: attended.softmax_of_tokens(*a), g, v, length, count=24)
    np.testing.assert_allclose(whole, parts, rtol=1e-12)
