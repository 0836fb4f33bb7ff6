"""The three ways to draw what is attended to have one law, and the tokens say which."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from attractor.prompts.regression import attended
from attractor.prompts.regression.batches import token_normals
from attractor.support.precision import double_precision

COUNT, D = 4096, 4
FEW = 24


@functools.cache
def compiled(draw):
    return jax.jit(draw, static_argnums=(3, 4))


def drawn(draw, scores, values, length, *, count=COUNT, dtype="float32"):
    """Mean and slope for many prompts with the same functionals, as NumPy arrays."""
    scores, values = (np.atleast_2d(np.asarray(f, np.float64)) for f in (scores, values))
    with double_precision():
        shape = (count, *scores.shape)
        found = compiled(draw)(
            jnp.array([0, 3], jnp.uint32),
            jnp.broadcast_to(scores, shape),
            jnp.broadcast_to(values, shape),
            length,
            dtype,
        )
        return np.asarray(found.mean), np.asarray(found.slope)


def plain(attention, scores, values, tokens):
    """Mean and slope of heads over tokens, as NumPy would write them."""
    g, v = np.atleast_2d(scores), np.atleast_2d(values)
    score = np.einsum("he,pel->phl", g, tokens)
    value = np.einsum("he,pel->phl", v, tokens)
    if attention == "linear":
        return tuple(np.einsum("phl,pel->phe", s, tokens) / tokens.shape[2] for s in (score, value))
    p = np.exp(score - score.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    centered = p * (value - (p * value).sum(-1, keepdims=True))
    return tuple(np.einsum("phl,pel->phe", weights, tokens) for weights in (p, centered))


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_heads_attend_to_the_tokens_drawn(attention):
    g, v = np.random.default_rng(0).standard_normal((2, 2, D - 1))
    draw = {"softmax": attended.softmax_of_tokens, "linear": attended.linear_of_tokens}[attention]
    found = drawn(draw, g, v, 7, count=FEW, dtype="float64")
    with double_precision():
        normals = jax.jit(token_normals, static_argnums=(2, 3))
        tokens = normals(jnp.array([0, 3], jnp.uint32), jnp.arange(FEW), 2, 7)
    tokens = np.asarray(tokens, np.float64)[:, : D - 1]
    for ours, expected in zip(found, plain(attention, g, v, tokens), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-13)


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
    found = drawn(attended.softmax_of_projections, g, v, length)
    assert has_the_law_of_tokens("softmax", found, g, v, length)


@pytest.mark.parametrize("name", ["generic", "one token"])
def test_moments_have_the_law_of_tokens(name):
    g, v, length = CASES[name]
    found = drawn(attended.linear_of_moments, g, v, length)
    assert has_the_law_of_tokens("linear", found, g, v, length)


def test_a_wrong_law_is_told_apart():
    g, v, length = CASES["generic"]
    found = drawn(attended.softmax_of_projections, np.multiply(1.3, g), v, length)
    assert not has_the_law_of_tokens("softmax", found, g, v, length)


def has_the_law_of_tokens(attention, found, g, v, length):
    """Compares outputs, gradients, and directions that mix them, with tokens of NumPy's."""
    rng = np.random.default_rng(1)
    expected = plain(attention, g, v, rng.standard_normal((COUNT, D, length)))
    left, right = (
        np.concatenate([part[:, 0] for part in parts], axis=1) for parts in (expected, found)
    )
    assert np.isfinite(right).all()
    scale = np.maximum(left.std(0), 1e-9)
    error = 5 / COUNT**0.5
    same = np.allclose(left.mean(0) / scale, right.mean(0) / scale, atol=2 * error)
    moments = [np.einsum("pi,pj->ij", a / scale, a / scale) / COUNT for a in (left, right)]
    same &= np.allclose(*moments, atol=5 * error, rtol=0.15)
    for direction in [*np.eye(2 * D), *rng.standard_normal((6, 2 * D))]:
        seen = [a @ direction for a in (left, right)]
        if max(np.ptp(values) for values in seen) > 1e-9:
            same &= stats.ks_2samp(*seen).pvalue > 1e-4
    return same


def test_scores_of_any_size_give_finite_numbers():
    g, v, length = CASES["generic"]
    of_tokens = functools.partial(drawn, attended.softmax_of_tokens, count=FEW)
    for draw in (of_tokens, functools.partial(drawn, attended.softmax_of_projections)):
        for size in (1e-20, 1e3):
            mean, slope = draw(np.multiply(g, size), v, length)
            assert np.isfinite(mean).all() and np.isfinite(slope).all()


def test_many_prompts_are_drawn_in_parts(monkeypatch):
    g, v, length = CASES["generic"]
    whole = drawn(attended.softmax_of_tokens, g, v, length, count=FEW)
    monkeypatch.setattr(attended, "_NUMBERS_AT_ONCE", 7 * D * length)
    parts = drawn(lambda *a: attended.softmax_of_tokens(*a), g, v, length, count=FEW)
    np.testing.assert_allclose(whole, parts, rtol=1e-5)
