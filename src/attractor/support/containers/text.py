"""Text of anybody's: in UTF-8, a block at a time, with one kind of line end."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from pathlib import Path

from attractor.support.errors import FileFormatError

BLOCK = 2**20
"""Bytes read at a time."""

_MARK = "\ufeff"
"""The byte order mark, which some editors put in front of a file."""


def read_text_blocks(file: Path, size: int = BLOCK) -> Iterator[str]:
    """The text of a file in blocks, in which every line ends in a line feed.

    A line ends at a line feed, a carriage return, or both, as in Python's own text files and in
    editors. Form feeds, vertical tabs and the separators of Unicode are white space within it. A
    byte order mark means nothing in front of a line; elsewhere a file without a last line break
    was put in front of another one, and the mark ends the line.

    Args:
        file: The file.
        size: Bytes to read at a time.

    Raises:
        FileFormatError: If it is no UTF-8; with the line and the byte.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    offset = lines = 0
    before = "\n"
    with file.open("rb") as stream:
        while True:
            block = stream.read(size)
            text, problem = "", None
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                place = error.start + len(block) - len(error.object)  # some were left from before
                problem = place, f"0x{byte:02x}, {error.reason}"
            if (place := block.find(b"\0")) >= 0:
                problem = place, "zero, as in UTF-16 or in a file of arrays"
            if problem is not None:
                place, what = problem
                line = lines + _line_ends(block[: max(place, 0)]) + 1
                raise FileFormatError(
                    f"{file} is no text in UTF-8: byte {offset + place + 1:,}, on line {line:,}, "
                    f"is {what}. Save it as UTF-8."
                )
            if _MARK in text:
                text = re.sub(f"(?<=\n){_MARK}+", "", before + text)[1:]
                text = re.sub(f"{_MARK}+", "\n", text)
            before = text[-1:] or before
            yield text
            if not block:
                return
            offset += len(block)
            lines += _line_ends(block)
            if block.endswith(b"\r"):  # with what follows it may be one
                following = stream.peek(1)[:1] if isinstance(stream, io.BufferedReader) else b""
                lines -= following == b"\n"


def _line_ends(block: bytes) -> int:
    return block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
