import jax
import mpmath
import numpy as np
import pytest
from scipy.special import softmax

from attractor.attention import row_cotangent, softmax_attention, softmax_row
from attractor.support.precision import double_precision


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def textbook(scores, values, mask):
    weights = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    return np.einsum("...t,...tv->...v", weights / weights.sum(-1, keepdims=True), values)


@jax.jit
def slope_in_scores(scores, values, push):
    return jax.grad(lambda s: softmax_attention(s, values) @ push)(scores)


@jax.jit
def cotangent(scores, mask, gain):
    return row_cotangent(softmax_row(scores, mask), gain)


def exact_score_gradient(scores, values, push):
    """Derivative of <push, attention> in the scores, in arbitrary precision."""
    with mpmath.workdps(60 + int(np.ptp(scores) / 2.3)):
        s = [mpmath.mpf(x) for x in scores]
        g = [mpmath.fsum(mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(x, push, strict=True))
             for x in values]  # fmt: skip
        w = [mpmath.exp(x - max(s)) for x in s]
        p = [x / mpmath.fsum(w) for x in w]
        mean = mpmath.fsum(a * b for a, b in zip(p, g, strict=True))
        q = [a * (b - mean) for a, b in zip(p, g, strict=True)]
        norm = mpmath.sqrt(mpmath.fsum(x * x for x in q))
        return np.array([float(x / norm) for x in q]), float(mpmath.log(norm))


def test_forward_agrees_with_the_textbook(rng):
    scores, values = rng.normal(size=(4, 3, 5)) * 3, rng.normal(size=(4, 3, 5, 2))
    mask = rng.random((4, 3, 5)) < 0.7
    mask[..., 0] = True
    found = jax.jit(softmax_attention)(scores, values, mask)
    np.testing.assert_allclose(found, textbook(scores, values, mask), atol=1e-14)


@pytest.mark.parametrize("gap", [0, 16, 37, 100, 300, 600])
def test_ordinary_derivative_is_exact_while_floating_point_lasts(rng, gap):
    scores = np.where(np.arange(6) == 2, float(gap), 0.0)
    values, push = rng.normal(size=(6, 3)), rng.normal(size=3)
    gradient = slope_in_scores(scores, values, push)
    expected, log = exact_score_gradient(scores, values, push)
    found = np.asarray(gradient) * np.exp(-log)
    assert np.linalg.norm(found - expected) <= 1e-12


def test_derivative_in_values_is_the_attention_weights(rng):
    scores, values = rng.normal(size=5), rng.normal(size=(5, 2))
    gradient = jax.jit(jax.grad(lambda x: softmax_attention(scores, x)[0]))(values)
    np.testing.assert_allclose(gradient[:, 0], softmax(scores), atol=1e-15)


def test_leading_axes_and_vmap_agree(rng):
    scores, values = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4, 5))
    whole = jax.jit(softmax_attention)(scores, values)
    mapped = jax.jit(jax.vmap(jax.vmap(softmax_attention)))(scores, values)
    np.testing.assert_allclose(whole, mapped, atol=1e-15)


def test_masked_tokens_and_empty_rows_give_no_nan(rng):
    values = np.where(np.arange(4)[:, None] == 3, np.inf, rng.normal(size=(4, 2)))
    mask = np.array([[True, True, False, False], [False] * 4])
    scores = rng.normal(size=(2, 4))

    def total(scores):
        found = softmax_attention(scores, values, mask)
        return found.sum(), found

    (value, found), gradient = jax.jit(jax.value_and_grad(total, has_aux=True))(scores)
    assert np.isfinite(value) and np.isfinite(gradient).all()
    assert (np.asarray(gradient)[~mask] == 0).all()
    assert (np.asarray(found)[1] == 0).all()


@pytest.mark.parametrize("gap", [0, 600, 5000])
def test_row_cotangent_at_any_gap(rng, gap):
    scores = np.where(np.arange(5) == 1, float(gap), 0.0)
    gain = rng.normal(size=5)
    mantissa, log_scale = cotangent(scores, np.ones(5, bool), gain)
    expected, log = exact_score_gradient(scores, gain[:, None], np.ones(1))
    norm = np.linalg.norm(mantissa)
    np.testing.assert_allclose(mantissa / norm, expected, atol=1e-14)
    assert abs(np.log(norm) + float(log_scale) - log) < 1e-11
    assert abs(float(mantissa.sum())) < 1e-15


def test_row_cotangent_takes_its_scale_over_different_gains():
    scores, gain = np.array([5000.0, 5000.0, 0.0]), np.array([1.0, 1.0, 0.0])
    mantissa, log_scale = cotangent(scores, np.ones(3, bool), gain)
    np.testing.assert_allclose(mantissa, [0.25, 0.25, -0.5])
    assert log_scale == -5000


@pytest.mark.parametrize("mask", [[True, False, False], [True, True, False]])
def test_row_cotangent_of_one_token_or_of_equal_gains_is_exactly_zero(mask):
    scores, gain = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 7.0])
    mantissa, log_scale = cotangent(scores, np.array(mask), gain)
    assert (np.asarray(mantissa) == 0).all() and log_scale == -np.inf
