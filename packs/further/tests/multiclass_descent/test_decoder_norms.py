"""Margins of decoders of contexts of very different frequencies."""

import pytest

from attractor.corpora import Corpus, CorpusCase
from attractor.papers import Outcome, examine, get_claim

NAMES = ("sign-descent", "normalized-descent", "spectral-descent")
ALL = (*NAMES, "sign-momentum", "normalized-momentum", "muon", "adam")


def of_counts(often):
    contexts, followers = [[0, 1], [1, 2], [2, 0], [0, 2]], [0, 1, 2, 1]
    counts = [1, often, 1, often]
    return CorpusCase(Corpus.from_samples(contexts, followers, range(3), counts=counts))


@pytest.mark.parametrize("often", [10**6, 10**9, 10**12])
@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_rare_contexts_keep_on_its_way_is_not_settled(name, often, optimized):
    found = examine(get_claim(f"multiclass-descent/margin-of-{name}"), of_counts(often))
    assert found.outcome in (Outcome.HOLDS, Outcome.NOT_SETTLED), found.reason


@pytest.mark.slow
@pytest.mark.parametrize("often", [10**6, 10**9, 10**12])
@pytest.mark.parametrize("name", ALL)
def test_so_are_those_with_memory(name, often, optimized):
    found = examine(get_claim(f"multiclass-descent/margin-of-{name}"), of_counts(often))
    assert found.outcome in (Outcome.HOLDS, Outcome.NOT_SETTLED), found.reason
