import numpy as np
import pytest

from attractor.corpora import Corpus
from attractor.corpora.corpus import with_context_length, with_frequent_tokens
from attractor.corpora.embeddings import VocabularyEmbeddings, parse_embedding
from attractor.support.errors import InvalidInputError


def test_sentences_that_count_more_keep_their_tokens():
    corpus = Corpus([0, 1, 0, 1, 2, 3], [0, 4, 6], "abcd", counts=[1, 5])
    smaller, kept = with_frequent_tokens(corpus, 2)
    assert kept.tolist() == [2, 3]
    assert smaller.vocabulary == ("c", "d", "<other>")
    assert smaller.tokens.tolist() == [2, 2, 2, 2, 0, 1]
    assert smaller.counts.tolist() == [1, 5]


def test_tokens_that_never_occur_are_dropped():
    smaller, kept = with_frequent_tokens(Corpus([3, 1], [0, 2], 5), 9)
    assert smaller.vocabulary == ("1", "3") and kept.tolist() == [1, 3]


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_a_size_that_is_none(most):
    with pytest.raises(InvalidInputError, match="vocabulary"):
        with_frequent_tokens(Corpus([0, 1], [0, 2]), most)


def test_shorter_contexts():
    corpus = Corpus([0, 1, 2, 3], [0, 4], every_prefix=False, counts=[3])
    shorter = with_context_length(corpus, 1)
    assert shorter.context(0).tolist() == [2] and shorter.weights.tolist() == [3]


def test_parts_find_their_own_vectors():
    vectors = VocabularyEmbeddings.named("gaussian:3", ("a", "b", "c", "d"), seed=1)
    part = Corpus([0, 1], [0, 2], ["d", "b"])
    np.testing.assert_array_equal(vectors.of(part), vectors.table[[3, 1]])
    np.testing.assert_allclose(np.linalg.norm(vectors.table, axis=1), 1)
    assert "cannot be orthonormal" in vectors.sentence()
    assert not vectors.summary()["orthonormal"]


def test_unit_vectors_are_orthonormal_and_not_written_out():
    vectors = VocabularyEmbeddings.named("one-hot", tuple(map(str, range(10**6))))
    assert vectors.dimension == 10**6 and vectors.summary()["orthonormal"]
    np.testing.assert_array_equal(vectors.of(Corpus([0, 1], [0, 2])), np.eye(2))


def test_vectors_at_an_angle_are_told_from_orthonormal_ones():
    names = ("a", "b")
    slanted = VocabularyEmbeddings("given", names, np.array([[1.0, 0, 0], [0.6, 0.8, 0]]))
    assert "not orthonormal" in slanted.sentence() and "0.6" in slanted.sentence()
    turned = VocabularyEmbeddings("given", names, np.array([[0.6, 0.8], [-0.8, 0.6]]))
    assert "orthonormal, as assumed" in turned.sentence() and turned.summary()["orthonormal"]


@pytest.mark.parametrize("name", ["random", "gaussian", "gaussian:0", "gaussian:-3", "one-hot:3"])
def test_names_of_no_embeddings(name):
    with pytest.raises(InvalidInputError, match="embedding"):
        parse_embedding(name)
