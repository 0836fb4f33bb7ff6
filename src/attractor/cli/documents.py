"""Texts of the user's: a document a line, or a file each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from attractor.errors import FileFormatError, InvalidInputError

_REMEDY = "Give a file with a document a line, or a folder of .txt files, in UTF-8"
LONGEST = 2**20
"""Bytes of a document: models see far less of it."""


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
    if path.is_dir():
        for file in sorted(path.glob("*.txt")):
            with file.open("rb") as stream:
                yield _decoded(file, stream.read(LONGEST))
        return
    with path.open("rb") as stream:
        while line := stream.readline(LONGEST):
            yield _decoded(path, line)


def _decoded(file: Path, content: bytes) -> str:
    """The text of a document, with single spaces; cut within a letter where it is very long."""
    errors = "ignore" if len(content) == LONGEST else "strict"
    try:
        text = content.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file} is no text in UTF-8: {error}. Save it as UTF-8.") from None
    if "\0" in text:
        raise FileFormatError(f"{file} is no text in UTF-8: it has a zero. Save it as UTF-8.")
    return " ".join(text.split())
