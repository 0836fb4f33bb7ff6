import jax
import mpmath
import numpy as np
import pytest
import runs

import attractor as at
from attractor.analysis.losses.excess_loss import has_excess_loss, log_excess_loss
from attractor.attention import (
    Exponential,
    Linear,
    Logistic,
    attention_rows,
    excess as traced,
    get_parameterization,
)
from attractor.attention.heads import ConcaveHead, ValueMatrix
from attractor.support.precision import double_precision

LOSSES = {
    "logistic": lambda m: mpmath.log1p(mpmath.exp(-m)),
    "exponential": lambda m: mpmath.exp(-m),
    "linear": lambda m: -m,
}


@pytest.fixture
def data(rng):
    """Three rows, one with a masked token, one whose best token has a copy."""
    keys = rng.normal(size=(3, 4, 5))
    keys[2, 1] = keys[2, 0]
    mask = np.ones((3, 4), bool)
    mask[1, 3] = False
    tokens = at.Tokens(keys, rng.normal(size=(3, 5)), [1, -1, 1], mask=mask)
    head = at.LinearHead(rng.normal(size=5))
    return tokens, head, at.token_scores(tokens, head)


def exact(name, scores, gamma, selected, digits):
    with mpmath.workdps(digits):
        total = mpmath.mpf(0)
        for row, own, chosen in zip(scores[:, 0], gamma[:, 0], selected[:, 0], strict=True):
            live = np.isfinite(row)
            weights = [mpmath.exp(mpmath.mpf(s)) for s in row[live]]
            value = sum(w * mpmath.mpf(g) for w, g in zip(weights, own[live], strict=True))
            kept = max(own[chosen & live])
            total += LOSSES[name](value / sum(weights)) - LOSSES[name](mpmath.mpf(kept))
        total /= len(scores)
        return float(mpmath.log(total)) if total > 0 else np.nan


def measured(name, W, data, selected):
    tokens, head, gamma = data
    loss = {"logistic": Logistic(), "exponential": Exponential(), "linear": Linear()}[name]
    return log_excess_loss(loss, tokens.scores(W), gamma, head.reach(tokens.values), selected)


@pytest.mark.parametrize("name", LOSSES)
def test_every_magnitude_is_right(name, data, rng):
    tokens, _, gamma = data
    best = gamma == gamma.max(-1, keepdims=True)
    # The copy of a token scores the same up to rounding, and counts as the same.
    gamma[2, 0, 1] = gamma[2, 0, 0]
    # Scores of -1000 to 0, so that the best tokens win by any gap.
    direction = at.solve(at.MarginProblem.from_selection(tokens, at.optimal_tokens(*data[:2]),
                                                         ties="equal")).W  # fmt: skip
    W = np.array([0, 1, 10, 40, 300, 1000])[:, None, None] * direction
    W = W + 0.1 * rng.normal(size=W.shape)
    found = measured(name, W, data, best)
    scores = tokens.scores(W)
    # The last excess is about e^-1000, and so lost without 440 digits.
    expected = [exact(name, each, gamma, best, digits=600) for each in scores]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert found.min() < -500


@pytest.mark.parametrize("name", LOSSES)
def test_tokens_that_are_not_the_best_may_be_kept(name, data, rng):
    tokens, _, gamma = data
    middle = np.sort(np.where(np.isfinite(gamma), gamma, -9), -1)[..., 2:3]
    selected = gamma == middle
    W = rng.normal(size=(40, 5, 5))
    found = measured(name, W, data, selected)
    expected = [exact(name, each, gamma, selected, digits=60) for each in tokens.scores(W)]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    assert 0 < np.isnan(found).sum() < len(found)


def test_it_is_the_value_of_the_traced_one(data, rng):
    tokens, head, gamma = data
    best = gamma == gamma.max(-1, keepdims=True)
    W = 30 * rng.normal(size=(5, 5))
    with double_precision():
        rows = attention_rows(tokens)
        expected = jax.jit(
            lambda W: traced.log_excess_loss(get_parameterization("W"), Logistic(), W, head, rows)
        )(W)
    assert measured("logistic", W[None], data, best)[0] == pytest.approx(float(expected), rel=1e-12)


def test_no_excess_is_minus_infinity(data):
    tokens, head, _ = data
    same = np.ones((3, 1, 4))
    nothing = log_excess_loss(
        Logistic(), np.zeros((2, 3, 1, 4)), same, head.reach(tokens.values), same > 0
    )
    assert np.isneginf(nothing).all()


def test_it_is_known_for_linear_heads_and_margin_losses_alone(rng):
    from attractor.attention import get_loss

    head = at.LinearHead(rng.normal(size=3))
    assert has_excess_loss(Logistic(), ValueMatrix(np.eye(3), head))
    assert not has_excess_loss(Logistic(), ConcaveHead(rng.normal(size=3), 0.5))
    assert not has_excess_loss(get_loss("squared"), head)


def test_a_verdict_has_the_curve_and_its_rate_is_that_of_one_over_the_time():
    verdict = runs.verdict(runs.trajectory)
    logs = verdict.data["log_excess_loss"].values
    loss = verdict.data["loss"].values
    early = np.isfinite(logs[..., 5]) & np.isfinite(logs[..., 0])
    fall = np.exp(logs[..., 0]) - np.exp(logs[..., 5])
    np.testing.assert_allclose(fall[early], (loss[..., 0] - loss[..., 5])[early], rtol=1e-10)
    slopes = verdict.rate("log_excess_loss", "log_time").data["trial_slope"]
    assert float(slopes.sel(part="second half").median()) == pytest.approx(-1, abs=0.01)
