"""Small corpora that several files share."""

import pytest

from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics import attention_limits, conflicting_corpora


@pytest.fixture(scope="session")
def cyclic():
    """Four corpora with cycles, and their limits; the first and the last have a finite part."""
    data = conflicting_corpora(4, cyclic=True, seed=2)
    return data, attention_limits(data.corpora, data.embeddings)


@pytest.fixture(scope="session")
def acyclic():
    data = conflicting_corpora(4, cyclic=False, seed=2)
    return data, attention_limits(data.corpora, data.embeddings)


@pytest.fixture
def uneven():
    """One context with two labels, of which the second counts twice, and a token after both.

    The score of label 0 less that of label 1 under query 2 settles at -log 2.
    """
    return Corpus.from_samples([[0, 1, 2], [0, 1, 2]], [0, 1], counts=[1, 2])


@pytest.fixture
def embeddings(rng):
    return rng.normal(size=(6, 8))
