import numpy as np
import pytest

from attractor.corpora import Corpus
from attractor.support.errors import InvalidInputError


def test_every_prefix_is_a_sample(worked_example):
    samples = [worked_example.words(i) for i in range(len(worked_example.positions))]
    assert samples == [
        "S -> V", "S V -> O", "S V O -> P", "V -> O", "V O -> P", "O -> P", "O P -> P", "P -> S",
        "P S -> V",
    ]  # fmt: skip
    assert worked_example.context_tokens == 15
    assert list(worked_example.vocabulary) == ["S", "V", "O", "P"]


def test_context_length_cuts_contexts_at_the_front():
    corpus = Corpus.from_sentences([list("abcd")], context_length=2)
    assert [corpus.words(i) for i in range(3)] == ["a -> b", "a b -> c", "b c -> d"]


def test_samples_of_their_own_have_no_prefixes():
    corpus = Corpus.from_samples([["a"], ["b", "c", "a"]], ["b", "c"], counts=[2, 5])
    assert [corpus.words(i) for i in range(2)] == ["a -> b", "b c a -> c"]
    assert corpus.weights.tolist() == [2, 5]


def test_a_sentence_of_one_token_is_no_sample():
    corpus = Corpus.from_samples([["a"], []], ["b", "c"])
    assert len(corpus.positions) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (dict(tokens=[], starts=[0]), "tokens"),
        (dict(tokens=[0, 1], starts=[0, 1]), "starts"),
        (dict(tokens=[0, 1], starts=[0, 2, 2]), "starts"),
        (dict(tokens=[0, -1], starts=[0, 2]), "tokens"),
        (dict(tokens=[0, 5], starts=[0, 2], vocabulary=["a", "b"]), "tokens"),
        (dict(tokens=[0, 1], starts=[0, 2], vocabulary=["a", "a"]), "vocabulary"),
        (dict(tokens=[0, 1], starts=[0, 1, 2]), "sentences"),
        (dict(tokens=[0, 1], starts=[0, 2], context_length=0), "context_length"),
        (dict(tokens=[0.5, 1], starts=[0, 2]), "tokens"),
        (dict(tokens=[0, 1], starts=[0, 2], counts=[0.0]), "counts"),
        (dict(tokens=[0, 1], starts=[0, 2], vocabulary=2**22), "vocabulary"),
    ],
)
def test_bad_input_is_named(arguments, named):
    with pytest.raises(InvalidInputError) as error:
        Corpus(**arguments)
    assert error.value.argument == named


def test_an_unknown_word_and_a_missing_label_are_named():
    with pytest.raises(InvalidInputError, match="'c' is not in the vocabulary"):
        Corpus.from_sentences([["a", "c"]], ["a", "b"])
    with pytest.raises(InvalidInputError, match="labels"):
        Corpus.from_samples([["a"]], [])


def test_token_numbers_are_read_only(worked_example):
    with pytest.raises(ValueError, match="read-only"):
        worked_example.tokens[0] = 1
    assert np.array_equal(worked_example.lengths, [4, 3, 3, 3])
