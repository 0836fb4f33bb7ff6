"""The logarithm of the excess loss against arithmetic of as many digits as it takes."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import (
    AttentionMatrix,
    CrossEntropy,
    LinearHead,
    ReLUHead,
    Squared,
    ValueMatrix,
    attention_rows,
    get_loss,
    scaled_gradient,
)
from attractor.attention.excess import log_excess_loss, log_loss
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.tokens import Tokens

LOSSES = ("logistic", "exponential", "linear")
LAYER = AttentionMatrix()


@functools.partial(jax.jit, static_argnums=0)
def _excess(name, W, head, rows, selected=None):
    return log_excess_loss(LAYER, get_loss(name), W, head, rows, selected)


def excess(name, W, v, rows, selected=None):
    with double_precision():
        return float(_excess(name, W, LinearHead(v), rows, selected))


@functools.partial(jax.jit, static_argnums=0)
def _slope(name, W, head, rows):
    return jax.grad(log_excess_loss, argnums=2)(LAYER, get_loss(name), W, head, rows)


@functools.partial(jax.jit, static_argnums=0)
def _mantissa(name, W, head, rows):
    return scaled_gradient(LAYER, get_loss(name), W, head, rows).attention.mantissa


@functools.partial(jax.jit, static_argnums=0)
def _loss(name, W, head, rows):
    return log_loss(LAYER, get_loss(name), W, head, rows)


def margin_loss(name, u):
    if name == "linear":
        return -u
    return mpmath.log1p(mpmath.exp(-u)) if name == "logistic" else mpmath.exp(-u)


def digits(rows, W):
    """Enough for differences as small as the smallest attention weight."""
    scores = np.einsum("ntd,de,nke->nkt", rows.keys, W, rows.queries)
    return 60 + int(np.ptp(scores, axis=-1).max() / np.log(10))


def exact_rows(rows, v, W):
    """Attention weights and token scores of every row, in many digits."""

    def number(array):
        return mpmath.matrix(np.asarray(array).tolist())

    found = []
    for keys, queries, labels in zip(rows.keys, rows.queries, rows.labels, strict=True):
        scores = number(keys) * (number(W) * number(queries[0]))
        gamma = number(keys) * number(v) * mpmath.mpf(float(labels[0]))
        top = max(scores)
        weights = [mpmath.exp(s - top) for s in scores]
        total = mpmath.fsum(weights)
        found.append(([w / total for w in weights], list(gamma)))
    return found


def exact_log_excess(name, rows, v, W, kept=None):
    with mpmath.workdps(digits(rows, W)):
        excess = mpmath.mpf(0)
        for number, (weights, gamma) in enumerate(exact_rows(rows, v, W)):
            best = max(gamma) if kept is None else gamma[kept[number]]
            delta = mpmath.fsum(p * (best - g) for p, g in zip(weights, gamma, strict=True))
            excess += margin_loss(name, best - delta) - margin_loss(name, best)
        return float(mpmath.log(excess / len(rows.keys))) if excess > 0 else np.nan


def exact_log_loss(name, rows, v, W):
    with mpmath.workdps(digits(rows, W)):
        terms = [
            margin_loss(name, mpmath.fsum(p * g for p, g in zip(weights, gamma, strict=True)))
            for weights, gamma in exact_rows(rows, v, W)
        ]
        return float(mpmath.log(mpmath.fsum(terms) / len(terms)))


@pytest.fixture
def data(rng):
    tokens = Tokens(
        rng.normal(size=(3, 4, 3)), rng.normal(size=(3, 1, 3)), np.array([[1], [-1], [1.0]])
    )
    return attention_rows(tokens), rng.normal(size=3)


def toward_best(rows, v, scale, rng):
    """A matrix under which every row attends to its best token."""
    gamma = rows.labels * (rows.keys @ v)
    best = rows.keys[np.arange(3), gamma.argmax(-1)]
    differences = best[:, None] - rows.keys
    vectors = (differences[:, :, :, None] * rows.queries[:, :, None, :]).reshape(12, 9)
    return scale * np.linalg.lstsq(vectors, rng.uniform(1, 2, 12), rcond=None)[0].reshape(3, 3)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scale", (0, 1, 19, 21, 30, 300, 3000))
def test_the_excess_is_that_of_many_digits(data, rng, name, scale):
    rows, v = data
    for W in (toward_best(rows, v, scale, rng), scale * rng.normal(size=(3, 3))):
        found = excess(name, W, v, rows)
        exact = exact_log_excess(name, rows, v, W)
        # Rounding of the scores themselves, which are as large as the scale.
        np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-13 * (1 + 10 * scale))


@pytest.mark.parametrize("name", LOSSES)
def test_other_tokens_may_be_the_reference(data, name):
    rows, v = data
    kept = (rows.labels * (rows.keys @ v)).argsort(-1)[:, 1]
    selected = (kept[:, None] == np.arange(4))[:, None]
    generator = np.random.default_rng(5)
    outcomes = set()
    for scale in (0.0, 1.0, 1.0, 1.0, 30.0, 30.0, 100.0):
        W = scale * generator.normal(size=(3, 3))
        found = excess(name, W, v, rows, selected)
        exact = exact_log_excess(name, rows, v, W, kept)
        outcomes.add(np.isnan(exact))
        np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-11)
    assert outcomes == {True, False}  # above and below the loss of the reference


@pytest.mark.parametrize("scale", (1, 30, 3000))
def test_the_derivative_points_along_the_gradient(data, rng, scale):
    rows, v = data
    W = toward_best(rows, v, scale, rng)
    for name in LOSSES:
        with double_precision():
            slope = np.asarray(_slope(name, W, LinearHead(v), rows))
            exact = np.asarray(_mantissa(name, W, LinearHead(v), rows))
        cosine = (slope * exact).sum() / np.linalg.norm(slope) / np.linalg.norm(exact)
        np.testing.assert_allclose(cosine, 1, rtol=1e-12)


def test_the_derivative_is_that_of_finite_differences(data, rng):
    rows, v = data
    W, direction = toward_best(rows, v, 3, rng), rng.normal(size=(3, 3))

    def value(t):
        moved = jnp.asarray(W) + t * direction
        return log_excess_loss(LAYER, get_loss("logistic"), moved, LinearHead(v), rows)

    with double_precision():
        slope, curve = map(float, jax.jit(jax.value_and_grad(jax.grad(value)))(0.0))
    ends = [exact_log_excess("logistic", rows, v, W + t * direction) for t in (-1e-5, 1e-5)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / 2e-5, rtol=1e-6)
    assert np.isfinite(curve)


def test_rows_without_a_choice_have_no_excess(data):
    rows, v = data
    alone = rows._replace(mask=rows.mask & (np.arange(4) == 0))
    nothing = rows._replace(mask=rows.mask & (np.arange(3) != 1)[:, None, None])
    with double_precision():
        W = np.ones((3, 3))
        assert excess("logistic", W, v, alone) == -np.inf
        assert not np.asarray(_slope("logistic", W, LinearHead(v), alone)).any()
        assert np.isfinite(excess("logistic", W, v, nothing))
        assert np.isfinite(_slope("logistic", W, LinearHead(v), nothing)).all()


def test_tokens_equal_but_for_rounding_share_the_best_score():
    keys = np.array([[[0.1, 0.2], [0.2, 0.1], [-1.0, 0.0]]])
    rows = attention_rows(Tokens(keys, np.ones((1, 1, 1)), np.ones((1, 1))))
    v = np.array([1 / 3, 1 / 3])
    first, second = keys[0, :2] @ v
    W = np.array([[100.0], [100.0]])
    found = excess("linear", W, v, rows)
    scores = keys[0] @ W[:, 0]
    share = scores[2] - np.logaddexp.reduce(scores)
    assert abs(first - second) < 1e-16
    np.testing.assert_allclose(found, share + np.log(first + 1 / 3), rtol=1e-13)


@pytest.mark.parametrize("name", ("logistic", "exponential"))
@pytest.mark.parametrize("size", (1e-3, 1, 100, 1e4, 3e4))
def test_the_loss_of_a_trained_head_is_exact_beyond_underflow(data, rng, name, size):
    rows, v = data
    rows = rows._replace(labels=np.sign(rows.keys.mean(1) @ v)[:, None])
    W = rng.normal(size=(3, 3))
    with double_precision():
        found = float(_loss(name, W, LinearHead(size * v), rows))
    np.testing.assert_allclose(found, exact_log_loss(name, rows, size * v, W), rtol=2e-13)


def test_what_has_no_known_best_loss_is_refused(data):
    rows, v = data
    W = np.ones((3, 3))
    value_matrix = ValueMatrix(np.eye(3), LinearHead(v))
    with double_precision():
        same = float(_excess("logistic", W, value_matrix, rows))
    np.testing.assert_allclose(same, excess("logistic", W, v, rows), rtol=1e-14)
    with pytest.raises(InvalidInputError, match="mixture of tokens"):
        log_excess_loss(LAYER, get_loss("logistic"), W, ReLUHead(np.eye(3)), rows)
    for loss in (CrossEntropy(), Squared(), get_loss(lambda f, y: (f - y) ** 4)):
        with pytest.raises(InvalidInputError, match="loss: "):
            log_excess_loss(LAYER, loss, W, LinearHead(v), rows)
    with pytest.raises(InvalidInputError, match="tends to zero"):
        log_loss(LAYER, get_loss("linear"), W, LinearHead(v), rows)
