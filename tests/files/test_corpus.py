import json

import numpy as np
import pytest

from attractor.corpora import Corpus, load_corpus, save_corpus
from attractor.files import load, load_tokens
from attractor.support.errors import InvalidInputError

SENTENCES = np.array([[0, 1, 2], [2, 0, -1]])


def samples(corpus):
    return [
        (corpus.context(number).tolist(), int(corpus.labels[number]))
        for number in range(len(corpus.positions))
    ]


def test_every_prefix_of_a_sentence_is_a_sample(write, suffix):
    loaded = load(write({"sentences": SENTENCES}, suffix))
    assert samples(loaded.corpus) == [([0], 1), ([0, 1], 2), ([2], 0)]
    assert loaded.corpus.vocabulary == ("0", "1", "2")


@pytest.mark.parametrize("padded", [[[0, 1, 2], [2, 1, -1]], [[0, 1, 2], [-1, 2, 1]]])
def test_contexts_are_padded_on_either_side(write, suffix, padded):
    given = {"contexts": np.array(padded), "labels": np.array([1, 0]), "counts": [2.0, 1.0]}
    corpus = load(write(given, suffix)).corpus
    assert samples(corpus) == [([0, 1, 2], 1), ([2, 1], 0)]
    assert not corpus.every_prefix and corpus.counts.tolist() == [2, 1]


def test_names_and_vectors(write, suffix):
    names = ["a", "b", "c", "never"]
    given: dict = {"sentences": SENTENCES, "embeddings": np.eye(4, 2)}
    texts = {"vocabulary": json.dumps(names)} if suffix == ".safetensors" else {}
    given |= {} if texts else {"vocabulary": np.array(names)}
    loaded = load(write(given, suffix, **texts))
    assert loaded.corpus.vocabulary == tuple(names)
    np.testing.assert_array_equal(loaded.embeddings, given["embeddings"])


def test_options_stand_over_the_file(write):
    path = write({"sentences": SENTENCES, "context_length": 2, "embeddings": np.eye(3)})
    assert load(path).corpus.context_length == 2
    loaded = load_corpus(path, context_length=1, vocabulary=1)
    assert loaded.corpus.context_length == 1
    assert loaded.corpus.vocabulary == ("0", "<other>")
    np.testing.assert_allclose(loaded.embeddings, [[1, 0, 0], [0, 1 / 3, 2 / 3]])
    assert "mean of their embeddings" in loaded.notices[0]


def test_sentences_without_samples_are_left_out_with_their_counts(write):
    given = {"sentences": np.array([[-1, -1], [0, 1], [1, -1]]), "counts": [1.0, 2.0, 3.0]}
    loaded = load(write(given))
    assert loaded.corpus.counts.tolist() == [2]
    assert [notice.split(":")[0] for notice in loaded.notices] == ["Skipped", "Left out"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"sentences": SENTENCES, "contexts": SENTENCES}, "contexts: .*both"),
        ({"sentences": SENTENCES, "labels": [0, 1]}, "labels: .*sentences"),
        ({"contexts": SENTENCES}, r"labels: .*without"),
        ({"contexts": SENTENCES, "labels": [0]}, "labels: there are 1 for 2"),
        ({"contexts": SENTENCES, "labels": [0, -1]}, "labels: some are negative"),
        ({"contexts": np.array([[0, -1, 1]]), "labels": [0]}, "contexts: row 0"),
        ({"contexts": np.array([[-1, -1]]), "labels": [0]}, "contexts: row 0 has no token"),
        ({"sentences": np.array([[-1, 0, 1]])}, "sentences: row 0"),
        ({"sentences": np.array([[0, -2]])}, "sentences: the smallest"),
        ({"sentences": SENTENCES.astype(float)}, "sentences: .*float64"),
        ({"sentences": np.array([[0, -1]])}, "sentences: none has two tokens"),
        ({"sentences": SENTENCES, "keys": np.ones(3)}, "keys: .*means nothing in a corpus"),
        ({"sentences": SENTENCES, "counts": [1.0]}, "counts"),
        ({"sentences": SENTENCES, "embeddings": np.eye(2)}, "tokens: "),
        ({"sentences": SENTENCES, "embeddings": np.ones(3)}, "embeddings: the shape"),
        ({"sentences": SENTENCES, "vocabulary": np.arange(3)}, "vocabulary: .*int64"),
        ({"sentences": SENTENCES, "vocabulary": ["a", "b"]}, "tokens: "),
        ({"sentences": SENTENCES, "context_length": 0}, "context_length"),
    ],
)
def test_what_does_not_fit_is_named(write, given, named):
    with pytest.raises(InvalidInputError, match=rf"^{named}"):
        load(write(given))


@pytest.mark.parametrize("names", ["no json", "3", "[1, 2, 3]"])
def test_a_vocabulary_in_metadata_is_a_list_of_texts(write, names):
    path = write({"sentences": SENTENCES}, ".safetensors", vocabulary=names)
    with pytest.raises(InvalidInputError, match=r"^vocabulary: .*json"):
        load(path)


def test_each_reader_names_the_other_kind(write, make):
    with pytest.raises(InvalidInputError, match=r"^file: .*attractor corpus"):
        load_tokens(write({"sentences": SENTENCES}))
    with pytest.raises(InvalidInputError, match=r"^file: .*attractor check"):
        load_corpus(write(make()))


@pytest.mark.parametrize("every_prefix", [True, False])
def test_a_corpus_comes_back(tmp_path, suffix, every_prefix):
    corpus = Corpus(
        [0, 1, 2, 0, 2, 1, 1],
        [0, 4, 6, 7],
        ["x", "y", "$z"],
        context_length=2,
        every_prefix=every_prefix,
        counts=[1, 2.5, 1],
    )
    path = tmp_path / f"corpus{suffix}"
    vectors = np.arange(6.0).reshape(2, 3).T  # not in the order of memory
    save_corpus(path, corpus, vectors)
    loaded = load(path)
    assert samples(loaded.corpus) == samples(corpus)
    assert loaded.corpus.weights.tolist() == corpus.weights.tolist()
    assert loaded.corpus.vocabulary == corpus.vocabulary
    assert loaded.corpus.every_prefix == every_prefix and loaded.corpus.context_length == 2
    np.testing.assert_array_equal(loaded.embeddings, vectors)


def test_nothing_is_written_that_cannot_be_read(tmp_path):
    corpus = Corpus.from_sentences([["a", "b"]])
    for path, embeddings in (
        ("a.txt", None),
        ("a.npz", np.eye(3)),
        ("a.npz", np.full((2, 1), np.nan)),
    ):
        with pytest.raises(InvalidInputError):
            save_corpus(tmp_path / path, corpus, embeddings)
    assert not list(tmp_path.iterdir())


def test_a_single_long_sentence_among_many_is_refused(tmp_path):
    lengths = np.r_[20_000, np.full(20_000, 2)]
    corpus = Corpus(np.zeros(lengths.sum(), int), np.cumsum(np.r_[0, lengths]))
    with pytest.raises(InvalidInputError, match="too many for one"):
        save_corpus(tmp_path / "a.npz", corpus)
