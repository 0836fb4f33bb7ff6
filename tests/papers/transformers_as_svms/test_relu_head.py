"""Attention under a ReLU head with labels 1: one token, unless nothing is active at the start."""

import numpy as np
import pytest

from attractor.attention import ReLUHead
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import attended_tokens
from attractor.papers import Outcome, examine, get_claim
from attractor.papers.transformers_as_svms.claims.heads import inactive_pair
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.several_tokens_data import relu_data_of_positive_labels
from attractor.tokens import Tokens
from attractor.training import train

STEPS = 5000


def stacked(n, d, seeds):
    """Data sets of n sequences of four tokens, on an axis of instances."""
    drawn = [relu_data_of_positive_labels(n, 4, d, seed) for seed in seeds]
    arrays = (np.stack([getattr(tokens, name) for tokens, _ in drawn]) for name in ARRAYS)
    return Tokens(*arrays), ReLUHead(np.stack([np.asarray(head.hidden) for _, head in drawn]))


ARRAYS = ("keys", "queries", "labels")


def from_zero(tokens, head):
    """Training from W = 0, and how many tokens it keeps in every row."""
    start = {"W": np.zeros((tokens.instances, tokens.key_dimension, tokens.query_dimension))}
    record = [STEPS // 2, STEPS]
    run = train(tokens, head, initial=start, steps=STEPS, record=record, **descent("W"))
    scores = tokens.scores(run.W()[:, 0])
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return run, (weights >= 1e-3).sum(-1)[..., 0]


def test_single_sequences_keep_all_tokens_just_where_no_unit_is_active_on_their_average():
    tokens, head = stacked(1, 4, range(1, 101))
    average = tokens.values.mean(-2)
    inactive = (average @ np.asarray(head.hidden) < 0).all((-1, -2))
    _, kept = from_zero(tokens, head)
    np.testing.assert_array_equal(kept[:, 0], np.where(inactive, 4, 1))
    assert 3 <= inactive.sum() <= 12  # one of 2^4 is to be expected


def test_several_sequences_keep_one_token_each_and_take_the_direction_of_the_active_ones():
    tokens, head = stacked(3, 4, range(1, 31))
    run, kept = from_zero(tokens, head)
    assert (kept == 1).all()
    attended = attended_tokens(tokens, run.W()[:, 0])
    # A row that ends at a token on which no unit is active has no gradient, and no constraint.
    active = (tokens.values @ np.asarray(head.hidden)[:, None] > 0).any(-1)
    inactive = ~(active[:, :, None] & attended.mask).any(-1)
    assert inactive.any(-1).sum() == 1
    constrained = np.where(inactive[..., None], attended.mask, tokens.mask)
    others = Tokens(tokens.keys, tokens.queries, tokens.labels, constrained)
    solution = solve(MarginProblem.from_selection(others, attended))
    way = run.W()[:, 0] - run.W(STEPS // 2)[:, 0]
    lengths = np.linalg.norm(way, axis=(1, 2)) * np.linalg.norm(solution.W, axis=(1, 2))
    np.testing.assert_allclose((way * solution.W).sum((1, 2)) / lengths, 1, atol=1e-4)


def test_from_zero_a_pair_with_no_active_unit_stays_though_one_token_is_better():
    case = inactive_pair()
    found = examine(get_claim("transformers-as-svms/relu-head-training"), case)
    assert found.outcome is Outcome.FAILS and found.measured.details["most tokens kept"] == 2
    np.testing.assert_array_equal(case.optimal.index, [0])
    # The first token needs two thirds of the attention before the unit is active at all.
    away = case.replace(initial=np.diag([0.24, 0.0]))
    assert examine(get_claim("transformers-as-svms/relu-head-training"), away).measured.value == 0


@pytest.mark.parametrize("number", range(4))
def test_with_labels_minus_one_averages_beat_every_token(number):
    claim = get_claim("transformers-as-svms/relu-head-best-attention")
    case = claim.data(0)[number]
    tokens = case.tokens
    other = case.replace(tokens=Tokens(tokens.keys, tokens.queries, -tokens.labels))
    assert examine(claim, other).outcome is Outcome.ASSUMPTION_NOT_MET
    assert claim.measured(other, 0).value > 0
