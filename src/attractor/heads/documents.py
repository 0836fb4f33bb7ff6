"""Texts of the user's: a document a line, or a file each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from attractor.support.containers import read_text_blocks
from attractor.support.errors import InvalidInputError

_REMEDY = "Give a file with a document a line, or a folder of .txt files, in UTF-8"
LONGEST = 2**20
"""Letters of a document: models see far less of it."""


def check_documents(path: Path) -> None:
    """Refuses a path where no texts can be.

    Raises:
        InvalidInputError: If there is neither a file nor a folder with files of text.
    """
    if path.is_dir():
        if not any(path.glob("*.txt")):
            raise InvalidInputError("TEXTS", f"the folder {path} has no .txt file", _REMEDY)
    elif not path.is_file():
        raise InvalidInputError("TEXTS", f"there is no file {path}", _REMEDY)


def read_documents(path: Path, most: int) -> list[str]:
    """Reads the first documents that are not empty: lines of a file, or ``.txt`` files by name.

    Args:
        path: The file or folder.
        most: Documents to read.

    Raises:
        InvalidInputError: If there is none.
        FileFormatError: If one is no text in UTF-8.
    """
    found = list(itertools.islice((text for text in _texts(path) if text), most))
    if not found:
        raise InvalidInputError("TEXTS", f"{path} has no text", _REMEDY)
    return found


def _texts(path: Path) -> Iterator[str]:
    """Documents with single spaces, cut where they are very long."""
    if path.is_dir():
        for file in sorted(path.glob("*.txt")):
            yield _spaced(_begun(file))
        return
    line = ""
    for text in read_text_blocks(path):
        first, *others = text.split("\n")
        line = (line + first)[:LONGEST]
        for other in others:
            yield _spaced(line)
            line = other[:LONGEST]
    yield _spaced(line)


def _begun(file: Path) -> str:
    """The beginning of a file."""
    text = ""
    for block in read_text_blocks(file):
        text += block
        if len(text) >= LONGEST:
            break
    return text[:LONGEST]


def _spaced(text: str) -> str:
    return " ".join(text.split())
