"""Loss and gradient against arithmetic with thousands of digits."""

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.corpora.linear import EmbeddedContexts
from attractor.corpora.linear.train import (
    entrywise_gradient_of,
    log_excess_of,
    rows_of,
    scaled_gradient_of,
    targets_of,
)
from attractor.support.precision import double_precision

M, D, V = 3, 3, 4


@jax.jit
def _all(W, targets):
    rows = rows_of(W, targets)
    one, entries = scaled_gradient_of(rows, targets), entrywise_gradient_of(rows, targets)
    excess = log_excess_of(rows, targets)
    return excess, one.mantissa, one.log_scale, entries.mantissa, entries.log_scale


def computed(contexts, W):
    with double_precision():
        return jax.tree.map(np.asarray, _all(W, targets_of(contexts)))


def exact(contexts, W, digits):
    """Excess and gradient, with probabilities that add up to one in these digits."""
    number = np.vectorize(mpmath.mpf, otypes=[object])
    with mpmath.workdps(digits):
        embeddings, weights = number(contexts.embeddings), number(W)
        p, pi = number(contexts.probabilities), number(contexts.frequencies)
        p, pi = p / p.sum(-1, keepdims=True), pi / pi.sum()
        logits = embeddings @ weights.T
        odds = np.vectorize(mpmath.exp, otypes=[object])(logits)
        softmax = odds / odds.sum(-1, keepdims=True)
        excess = sum(
            pi[j] * p[j, z] * mpmath.log(p[j, z] / softmax[j, z])
            for j, z in np.ndindex(p.shape)
            if p[j, z]
        )
        return mpmath.log(excess), (softmax - p).T @ (pi[:, None] * embeddings)


def check(contexts, W, digits=60, *, accuracy=1e-13, entries=1e-9):
    log_excess, gradient = exact(contexts, W, digits)
    excess, one, log_scale, each, log_scales = computed(contexts, W)
    assert float(abs(excess - log_excess)) < accuracy * (1 + abs(float(log_excess)))
    with mpmath.workdps(digits):
        largest = max(abs(entry) for entry in gradient.ravel())
        for v, i in np.ndindex(gradient.shape):
            found = mpmath.mpf(one[v, i]) * mpmath.exp(mpmath.mpf(float(log_scale)))
            assert float(abs(found - gradient[v, i]) / largest) < accuracy * (1 + abs(log_scale))
            found = mpmath.mpf(each[v, i]) * mpmath.exp(mpmath.mpf(float(log_scales[v, i])))
            assert float(abs(found - gradient[v, i])) <= entries * float(abs(gradient[v, i]))


def drawn(seed, *, one_hot=False, eye=False):
    rng = np.random.default_rng(seed)
    embeddings = np.eye(D) if eye else rng.normal(size=(M, D))
    support = rng.random((M, V)) < 0.6
    support[np.arange(M), rng.integers(0, V, M)] = True
    if one_hot:
        support = np.eye(V, dtype=bool)[rng.integers(0, V, M)]
    p = rng.random((M, V)) * support
    p /= p.sum(-1, keepdims=True)
    return EmbeddedContexts(embeddings, p, rng.integers(1, 9, M)), rng.normal(size=(V, D))


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 1.0, 8.0]), st.booleans(), st.booleans())
def test_excess_and_gradients_agree_with_many_digits(seed, scale, one_hot, eye):
    contexts, W = drawn(seed, one_hot=one_hot, eye=eye)
    check(contexts, scale * W)


@pytest.mark.parametrize("gap", [40, 700, 5000])
@pytest.mark.parametrize("eye", [True, False])
def test_gradients_survive_any_gap_of_one_hot_labels(gap, eye):
    contexts, W = drawn(7, one_hot=True, eye=eye)
    labels = contexts.probabilities.argmax(-1)
    toward = np.linalg.solve(contexts.embeddings, np.eye(V)[labels]).T
    W = gap * (toward + 0.1 * W / np.abs(W).max())
    # Logits are known to a rounding of their size, and so are logarithms of what they lead to.
    accuracy = 1e-15 * np.linalg.cond(contexts.embeddings)
    check(contexts, W, digits=200 + gap * 3 // 4, accuracy=accuracy, entries=gap * 1e-11)


def test_soft_labels_that_are_met_leave_what_is_outside():
    """Two tokens share context 0 evenly; one more is e^-gap below, in another context e^-2 gap."""
    contexts = EmbeddedContexts(np.eye(2), [[0.5, 0.5, 0], [0, 0, 1]])
    for gap in (30.0, 300.0, 3000.0):
        W = np.array([[0.0, -2 * gap], [0.0, -2 * gap], [-gap, 0.0]])
        excess, mantissa, log_scale, each, log_scales = computed(contexts, W)
        with mpmath.workdps(3000):
            outside = mpmath.log(mpmath.log1p(mpmath.exp(mpmath.mpf(-gap)) / 2) / 2)
        assert excess == pytest.approx(float(outside), abs=1e-11)
        slope = np.log(0.25) - gap  # of the token outside context 0
        assert np.log(mantissa[2, 0]) + log_scale == pytest.approx(slope, abs=1e-11)
        np.testing.assert_allclose(mantissa[:2, 0] / mantissa[2, 0], -0.5, rtol=1e-12)
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(each)) + log_scales
        np.testing.assert_allclose(logs[0], [slope - np.log(2), -2 * gap - np.log(2)], atol=1e-10)


def test_rounding_of_odds_that_are_met_is_no_gradient():
    rng = np.random.default_rng(3)
    W, embeddings = rng.normal(size=(V, D)), rng.normal(size=(M, D))
    p = np.exp(embeddings @ W.T)
    contexts = EmbeddedContexts(embeddings, p / p.sum(-1, keepdims=True))
    excess, mantissa, *_ = computed(contexts, W)
    assert excess == -np.inf and not mantissa.any()
    excess, mantissa, log_scale, *_ = computed(contexts, W + 1e-9 * rng.normal(size=(V, D)))
    assert -45 < excess < -35 and mantissa.any() and log_scale < -15


def test_rare_tokens_count():
    contexts = EmbeddedContexts([[1.0]], [[1e-300, 1 - 1e-300, 0]])
    check(contexts, np.array([[500.0], [0.0], [-3.0]]), digits=800)
    check(contexts, np.array([[-800.0], [0.0], [-3.0]]), digits=800)
