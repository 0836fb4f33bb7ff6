import sys

import numpy as np
import pytest

from attractor.corpora import token_priority_graphs
from attractor.corpora.mechanics import conflicting_corpora
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("cyclic", [True, False])
def test_corpora_are_as_asked(cyclic):
    data = conflicting_corpora(20, cyclic=cyclic, seed=3)
    assert data.embeddings.shape == (20, 6, 8)
    np.testing.assert_allclose(np.linalg.norm(data.embeddings, axis=-1), 1, rtol=1e-15)
    for corpus in data.corpora:
        assert token_priority_graphs(corpus).acyclic != cyclic
        assert len(corpus.positions) == 6 and corpus.vocabulary_size == 6
        for sample in range(6):
            context = corpus.context(sample)
            assert len(set(context.tolist())) == 4 and corpus.labels[sample] in context
    assert "20 corpora" in repr(data)


def test_redraws_are_the_draws_thrown_away():
    """Four draws in ten have no cycle; the shares of both kinds add up to one."""
    with_cycle = conflicting_corpora(120, cyclic=True, seed=1).redraws
    without = conflicting_corpora(120, cyclic=False, seed=1).redraws
    share = 120 / (120 + with_cycle.sum())
    assert share + 120 / (120 + without.sum()) == pytest.approx(1, abs=0.09)
    # The same draws serve both: the first kept is the first draw of one of them.
    assert ((with_cycle == 0) != (without == 0)).all()


def test_a_corpus_is_named_by_its_number_alone():
    few, many = conflicting_corpora(2, seed=5), conflicting_corpora(4, seed=5)
    np.testing.assert_array_equal(few.embeddings, many.embeddings[:2])
    for one, other in zip(few.corpora, many.corpora[:2], strict=True):
        np.testing.assert_array_equal(one.tokens, other.tokens)
    assert (few.embeddings != conflicting_corpora(2, seed=6).embeddings).any()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"length": 7}, "length: 7 different tokens cannot be drawn from 6"),
        ({"samples": 0}, "samples: 0 is not a count"),
        ({"vocabulary": 2.5}, r"vocabulary: 2\.5 is not a count"),
    ],
)
def test_sizes_that_cannot_be(sizes, words):
    with pytest.raises(InvalidInputError, match=words):
        conflicting_corpora(1, **sizes)


def test_corpora_that_do_not_exist(monkeypatch):
    """One sample never has a cycle, however often it is drawn."""
    monkeypatch.setattr(sys.modules[conflicting_corpora.__module__], "_DRAWS", 50)
    with pytest.raises(InvalidInputError, match=r"gave no corpus with a cycle.*more samples"):
        conflicting_corpora(1, samples=1)
