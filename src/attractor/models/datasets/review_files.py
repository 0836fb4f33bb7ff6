"""Reviews on disk, read one at a time: tables in CSV, and folders with a file for each review."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from attractor.support.errors import FileFormatError, InvalidInputError

LONGEST = 2**17
"""Bytes that one review may have, with its quotes and label; a reader never holds more."""
TEXT_NAMES = ("text", "review", "sentence", "content")
LABEL_NAMES = ("label", "sentiment", "class", "polarity")
SOURCE_NAME = "source"
"""The column that says which collection a review comes from."""

_CONVENTIONS = (("0", "1"), ("neg", "pos"), ("negative", "positive"))
_ACCEPTED = "Use 0 and 1, neg and pos, or negative and positive"
_REMEDY_COLUMNS = (
    f"Begin the file with a line of names such as text,label (known: {', '.join(TEXT_NAMES)} and "
    f"{', '.join(LABEL_NAMES)}), or give columns=(text column, label column), counted from 0"
)


class Review(NamedTuple):
    """A text with its label and origin.

    Attributes:
        text: The text.
        label: 1 if positive, 0 if negative.
        split: "train" or "test" where the data come with a split, else None.
        collection: Where the data say that the text comes from, else None.
    """

    text: str
    label: int
    split: str | None = None
    collection: str | None = None


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of texts, labels and collections, counted from 0, and how they were found."""

    text: int
    label: int
    collection: int | None
    has_names: bool
    reason: str


def find_columns(file: Path, chosen: Sequence[int] | None) -> Columns:
    """Finds the columns of texts and labels from the first line of a table.

    Columns chosen by number are taken. Otherwise the first line either names them; or there are
    two columns, and the entry of the first line that is a label says which column holds labels.

    Raises:
        InvalidInputError: If that leaves any doubt.
        FileFormatError: If the first line cannot be read.
    """
    first = next((row for _, row in _rows(file)), None)
    if first is None:
        raise InvalidInputError("path", f"{file.name} is empty", "Give a table of texts and labels")
    entries = [entry.strip().lower() for entry in first]
    are_labels = [_label(entry) is not None for entry in entries]
    if chosen is not None:
        text, label = _chosen(chosen, len(first), file)
        reason = "chosen by number"
        if not are_labels[label]:
            reason += f"; the first line is taken for names, {first[text][:20]!r}, {first[label]!r}"
        return Columns(text, label, None, not are_labels[label], reason)
    texts = [place for place, entry in enumerate(entries) if entry in TEXT_NAMES]
    labels = [place for place, entry in enumerate(entries) if entry in LABEL_NAMES]
    if len(texts) == len(labels) == 1:
        collection = entries.index(SOURCE_NAME) if SOURCE_NAME in entries else None
        named = f"named in the first line: {entries[texts[0]]}, {entries[labels[0]]}"
        return Columns(texts[0], labels[0], collection, True, named)
    if len(first) == 2 and sum(are_labels) == 1:
        label = are_labels.index(True)
        reason = f"no names; the first line has a label, {first[label]!r}, in column {label}"
        return Columns(1 - label, label, None, False, reason)
    raise InvalidInputError(
        "path",
        f"the first line of {file.name} leaves open which column holds texts and which labels: "
        f"{', '.join(repr(entry[:20]) for entry in first[:6])}",
        _REMEDY_COLUMNS,
    )


def table_reviews(file: Path, columns: Columns) -> Iterator[Review]:
    """Reads a table of reviews in CSV, a row at a time.

    Raises:
        InvalidInputError: If a label is none of those accepted, or a text is empty.
        FileFormatError: If the file is damaged; the message names the line.
    """
    rows = _rows(file)
    width = 0
    convention: tuple[str, str] | None = None
    for number, (line, row) in enumerate(rows):
        width = width or len(row)
        if len(row) != width:
            raise FileFormatError(
                f"{file}, line {line:,}: the row has {len(row)} entries, the first one {width}. "
                "The file is damaged or cut off, or an entry with a comma lacks quotes."
            )
        if number == 0 and columns.has_names:
            continue
        entry = row[columns.label].strip().lower()
        found = _label(entry)
        if found is None or (convention is not None and entry not in convention):
            raise InvalidInputError(
                "path",
                f"{file.name}, line {line:,}: {row[columns.label][:40]!r} is not a label"
                + ("" if convention is None else f" as the {convention} before it"),
                _ACCEPTED,
            )
        label, convention = found
        text = row[columns.text]
        if not text.strip():
            raise InvalidInputError(
                "path", f"{file.name}, line {line:,}: the text is empty", "Leave the row out"
            )
        collection = None if columns.collection is None else row[columns.collection]
        yield Review(text, label, None, collection)


def folder_reviews(folder: Path) -> Iterator[Review]:
    """Reads folders ``pos`` and ``neg`` of text files, in ``train`` and ``test`` or by themselves.

    This is how the Large Movie Review Dataset comes (Maas et al. 2011). Files are read in the
    order of their names, ``train`` before ``test`` and ``neg`` before ``pos``.

    Raises:
        InvalidInputError: If there are no such folders, or one is without files.
        FileFormatError: If a file is too long or no text in UTF-8.
    """
    given = [name for name in ("train", "test") if (folder / name).is_dir()]
    for split, place in [(name, folder / name) for name in given] or [(None, folder)]:
        for label, name in enumerate(("neg", "pos")):
            files = sorted((place / name).glob("*.txt"))
            if not files:
                raise InvalidInputError(
                    "path",
                    f"there are no .txt files in {place / name}",
                    "Give the folder aclImdb of the Large Movie Review Dataset, or any with "
                    "folders pos and neg of text files",
                )
            for file in files:
                yield Review(_file_text(file), label, split)


def _label(entry: str) -> tuple[int, tuple[str, str]] | None:
    """A label as 0 or 1, and the pair of words it is one of; None for other entries."""
    known = (pair for pair in _CONVENTIONS if entry in pair)
    return next(((pair.index(entry), pair) for pair in known), None)


def _chosen(chosen: Sequence[int], width: int, file: Path) -> tuple[int, int]:
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(range(width)):
        raise InvalidInputError(
            "columns",
            f"got {tuple(chosen)} for the {width} columns of {file.name}",
            f"Give two different numbers from 0 to {width - 1}: of the texts, of the labels",
        )
    return chosen[0], chosen[1]


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with the line on which each begins; empty lines are skipped."""
    lines = _Lines(file)
    reader = csv.reader(lines, strict=True)
    while True:
        begin = lines.number + 1
        lines.held = 0
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise FileFormatError(
                f"{file}: the row that begins on line {begin:,} is no row of a CSV table "
                f"({error}). The file is damaged or cut off, or a quote is not closed."
            ) from None
        if row is None:
            return
        if row:
            yield begin, row


class _Lines(Iterator[str]):
    """Lines of a file in UTF-8 that refuses to hold more than ``LONGEST`` bytes of a row."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines = self._read()
        self.number = self.held = 0

    def __next__(self) -> str:
        return next(self._lines)

    def _read(self) -> Iterator[str]:
        with self._file.open("rb") as stream:
            while line := stream.readline(LONGEST + 1):
                self.number += 1
                self.held += len(line)
                if self.held > LONGEST:
                    raise FileFormatError(
                        f"{self._file}, line {self.number:,}: the row is longer than "
                        f"{LONGEST:,} bytes. Shorten the text; or a quote before it is not closed."
                    )
                text = _decoded(line, f"{self._file}, line {self.number:,}")
                yield text.removeprefix("\ufeff") if self.number == 1 else text


def _file_text(file: Path) -> str:
    with file.open("rb") as stream:
        content = stream.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise FileFormatError(f"{file} is longer than {LONGEST:,} bytes. Shorten the text.")
    text = _decoded(content, str(file)).removeprefix("\ufeff")
    if not text.strip():
        raise InvalidInputError("path", f"{file} is empty", "Leave the file out")
    return text


def _decoded(content: bytes, where: str) -> str:
    if b"\0" in content:
        raise FileFormatError(f"{where}: there is a byte 0, so this is no text in UTF-8.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{where}: byte {error.start + 1:,} is not UTF-8 ({error.reason}). Save it as UTF-8."
        ) from None
