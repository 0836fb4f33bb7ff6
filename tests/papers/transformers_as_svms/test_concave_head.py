"""How many tokens a concave head keeps."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from attractor.papers.transformers_as_svms.claims.heads import kept_by_projection
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.figures.concave_head import best_weights
from attractor.papers.transformers_as_svms.several_tokens_data import orthonormal_tokens
from attractor.training import train

SCORES = st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=8, unique=True)


@settings(max_examples=60, deadline=None)
@given(scores=SCORES, penalty=st.floats(0.01, 20))
def test_best_weights_meet_the_conditions_for_a_maximum(scores, penalty):
    scores = np.array(scores)
    s = best_weights(scores, np.array(penalty))
    assert (s >= 0).all() and s.sum() == pytest.approx(1, abs=1e-12)
    slopes = scores - 2 * penalty * s
    assert slopes[s > 0].min() >= slopes.max() - 1e-10 * (1 + penalty)


@settings(max_examples=60, deadline=None)
@given(scores=SCORES, penalty=st.floats(0.01, 20))
def test_as_many_are_kept_as_in_rational_arithmetic(scores, penalty):
    falling = np.sort(scores)[::-1]
    s = best_weights(falling, np.array(penalty))
    clear = (s == 0) | (s > 1e-12)  # rounding decides whether tinier weights are zero
    if clear.all():
        assert (s > 0).sum() == kept_by_projection(falling, penalty)


def test_without_a_penalty_the_best_token_is_kept():
    s = best_weights(np.array([[0.1, 0.7, -1.0]] * 2), np.array([0.0, 1e6]))
    np.testing.assert_array_equal(s[0], [0, 1, 0])
    np.testing.assert_allclose(s[1], 1 / 3, atol=1e-6)


def test_training_keeps_about_as_many_as_the_best_attention(optimized):
    penalties, count = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0), 30
    tokens, head = orthonormal_tokens(10, range(1, count + 1), penalties)
    run = train(tokens, head, steps=2001, record=[2001], **descent("W"))
    scores = tokens.scores(run.W()[:, 0])[:, 0, 0]
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    token_scores = np.einsum("itd,id->it", tokens.keys[:, 0], head.weight)
    best = best_weights(token_scores, head.penalty)
    kept, wanted = ((s >= 1e-3).sum(-1).reshape(-1, count).mean(1) for s in (weights, best))
    np.testing.assert_allclose(kept, wanted, atol=0.3)
    assert wanted[0] < 2 < 8 < wanted[-1]
