"""JSON of anybody's: no deeper than people write it, and with texts that can be written again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attractor.support.containers.damage import parsing, read_whole

_DEEPEST = 100
_MOST = 2**22
"""Largest depth and number of nested lists and objects."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TEXT_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)


def parse_json(text: str | bytes) -> Any:
    """The value of a text of JSON.

    Raises:
        ValueError: If it is no JSON in UTF-8, is nested too deeply, holds too many lists and
            objects, or has half a code point.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    text.encode("utf-8")  # what HDF5 hands over may be no UTF-8
    _check_brackets(text)
    found = json.loads(text)
    if _SURROGATE.search(text):
        json.dumps(found, ensure_ascii=False).encode("utf-8")  # pairs are whole, halves raise
    return found


def read_json(file: str | os.PathLike[str], kind: str = "json") -> Any:
    """The value in a file of JSON.

    Raises:
        FileFormatError: If there is no such file, or it is damaged.
    """
    with parsing(file, kind):
        return parse_json(read_whole(Path(file)))


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word within a value under its dotted name, such as ``rows[0].rate``."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from leaves(entry, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from leaves(entry, f"{name}[{number}]")
    else:
        yield name, value


def _check_brackets(text: str) -> None:
    """Refuses what would fill the stack or the memory, before anything is built of it."""
    depth = count = 0
    for found in _TEXT_OR_BRACKET.finditer(text):
        letter = text[found.start()]
        if letter in "[{":
            depth, count = depth + 1, count + 1
            if depth > _DEEPEST:
                raise ValueError(f"it is nested more than {_DEEPEST} deep")
            if count > _MOST:
                raise ValueError(f"it holds more than {_MOST:,} lists and objects")
        elif letter in "]}":
            depth -= 1
