"""The loss of decoders, some of whose contexts are rare."""

import pytest

from attractor.corpora import Corpus, CorpusCase
from attractor.papers import Outcome, examine, get_claim

CLAIM = get_claim("linear-next-token/loss-of-descent")


@pytest.mark.parametrize("often", [3, 30, 300, 10**5])
def test_it_fails_for_no_rare_context(often):
    contexts = [[0, 1], [1, 2], [2, 0]]
    corpus = Corpus.from_samples(contexts, [0, 1, 2], range(3), counts=[1, often, often])
    found = examine(CLAIM, CorpusCase(corpus))
    allowed = (Outcome.HOLDS,) if often <= 3 else (Outcome.HOLDS, Outcome.NOT_SETTLED)
    assert found.outcome in allowed, found.reason


@pytest.mark.parametrize("odds", [1, 10**4])
def test_nor_for_a_rare_follower(odds):
    samples = ([[0], [0], [1]], [0, 1, 2])
    corpus = Corpus.from_samples(*samples, range(3), counts=[odds, 1, odds])
    found = examine(CLAIM, CorpusCase(corpus))
    assert found.outcome in (Outcome.HOLDS, Outcome.NOT_SETTLED), found.reason


@pytest.mark.parametrize("seed", range(1))
def test_another_exponent_fails_where_runs_are_long_enough(seed):
    for case in CLAIM.data(seed):
        assert examine(CLAIM, case).outcome is Outcome.HOLDS
        assert examine(CLAIM.exchanged(), case).outcome is Outcome.FAILS
