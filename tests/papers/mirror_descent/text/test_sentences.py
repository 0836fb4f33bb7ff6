"""Fixed sentences: the same words for every model, whatever cuts them into pieces."""

import numpy as np
import pytest

from attractor.models.datasets import planted_reviews, train_tokenizer
from attractor.papers.mirror_descent.texts import (
    SENTENCES,
    planted_sentences,
    tokenized_sentences,
)

PLAIN = [sentence.replace("+", "").replace("-", "") for sentence in SENTENCES]


@pytest.fixture(scope="module")
def reviews():
    return planted_reviews(10, 5, 5)


def test_words_that_tell_the_class_stand_for_class_words(reviews):
    found = planted_sentences(reviews)
    negative, positive = reviews.class_words
    assert [" ".join(row).strip() for row in found.words.tolist()] == PLAIN
    of_word = {}
    for row, position in zip(found.ids, found.word_of_position, strict=True):
        assert row[0] == 1 and position[0] == -1
    for (row, word), sign in np.ndenumerate(found.signs):
        text, number = found.words[row, word], found.ids[row, word + 1]
        if text:
            assert of_word.setdefault(text, number) == number  # the same wherever it stands
            assert (number in positive) == (sign == 1) and (number in negative) == (sign == -1)
    assert len(set(of_word.values())) == len(of_word)


def test_attention_is_summed_over_the_pieces_of_a_word():
    pytest.importorskip("tokenizers")
    tokenizer = train_tokenizer(PLAIN * 3, vocabulary=60, minimum_count=1)  # words fall to pieces
    found = tokenized_sentences(tokenizer, 64)
    assert (found.mask.sum(1) > (found.words != "").sum(1) + 2).all()  # [CLS] and [SEP] as well
    by_word = found.by_word(found.mask.astype(float))
    np.testing.assert_array_equal(np.isnan(by_word), found.words == "")
    assert np.nansum(by_word) == found.mask.sum() - 2 * len(PLAIN)
    uniform = found.mask / found.mask.sum(1, keepdims=True)
    share = np.nansum(found.by_word(uniform) * (found.signs != 0), axis=1)
    np.testing.assert_allclose(share, found.by_chance)
    assert share[-1] == 0 and (share[:-1] > 0).all()


def test_words_beyond_the_cut_have_no_attention():
    pytest.importorskip("tokenizers")
    tokenizer = train_tokenizer(PLAIN * 3, vocabulary=400, minimum_count=1)
    found = tokenized_sentences(tokenizer, 4)
    by_word = found.by_word(np.ones(found.mask.shape))
    assert np.isfinite(by_word[:, :3]).all() and np.isnan(by_word[:, 3:]).all()


def test_telling_words_are_in_the_sentiment_lexicon():
    pytest.importorskip("vaderSentiment")
    from attractor.models.datasets import sentiment_words

    lexicon = sentiment_words(1.0)
    for sentence in SENTENCES:
        for word in sentence.split():
            assert (word.lstrip("+-") in lexicon) == (word[0] in "+-")
