import numpy as np
import pytest

from attractor.corpora import Corpus, samples
from attractor.corpora.samples import attention_tokens, distinct_samples
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("context_length", [None, 1, 2, 3])
def test_the_same_as_counting_written_out_samples(rng, context_length):
    sentences = [rng.integers(0, 3, size).tolist() for size in rng.integers(2, 7, 60)]
    counts = rng.integers(1, 4, 60)
    corpus = Corpus.from_sentences(sentences, context_length=context_length, counts=counts)
    expected = {}
    for sentence, count in zip(sentences, counts, strict=True):
        for end in range(1, len(sentence)):
            begin = 0 if context_length is None else max(0, end - context_length)
            key = (tuple(sentence[begin:end]), sentence[end])
            expected[key] = expected.get(key, 0) + count
    found = distinct_samples(corpus)
    keys = [
        (tuple(row[row >= 0].tolist()), int(label))
        for row, label in zip(found.contexts, found.labels, strict=True)
    ]
    assert keys == list(expected)
    total = sum(expected.values())
    assert np.allclose(found.frequencies, [n / total for n in expected.values()], rtol=1e-14)
    assert np.array_equal(found.queries, [key[0][-1] for key in keys])


def test_rows_of_several_corpora_are_filled_up_with_weight_zero(worked_example):
    small = Corpus.from_sentences([list("SVP"), list("OP")], ["S", "V", "O", "P"])
    both = [distinct_samples(worked_example), distinct_samples(small)]
    tokens = attention_tokens(both, np.eye(4))
    assert tokens.keys.shape == (2, 9, 3, 4)
    assert (tokens.weights[1, 3:] == 0).all()
    assert tokens.weights.mean((-1, -2)) == pytest.approx([1, 1])
    alone = attention_tokens(both[1], np.eye(4))
    assert np.array_equal(tokens.keys[1, :3, :2], alone.keys)
    assert np.array_equal(tokens.queries[1, :3], alone.queries)


def test_contexts_too_long_to_write_out_are_refused(monkeypatch):
    corpus = Corpus.from_sentences([range(20)])
    monkeypatch.setattr(samples, "MOST_ENTRIES", 100)
    with pytest.raises(InvalidInputError, match="context_length"):
        distinct_samples(corpus)
    short = distinct_samples(Corpus.from_sentences([range(4)]))
    with pytest.raises(InvalidInputError, match="smaller dimension"):
        attention_tokens(short, np.eye(20))
