"""A ``metadata`` element of an SVG drawing."""

from __future__ import annotations

import re
import xml.parsers.expat
from html import escape
from pathlib import Path
from typing import Any

from attractor.support.containers import read_whole

_OURS = re.compile(rb'<metadata id="provenance">[^<]*</metadata>\n')


def insert(file: Path, text: str) -> bytes:
    """The drawing with an ASCII text before the tag that ends it."""
    drawing = _OURS.sub(b"", file.read_bytes())
    start, end, rest = drawing.rpartition(b"</svg>")
    if not end:
        raise ValueError("it has no </svg>")
    element = f'<metadata id="provenance">{escape(text, quote=False)}</metadata>\n'
    return start + element.encode("ascii") + end + rest


def read(file: Path) -> str | None:
    """The text, or None."""
    parser = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    inside: list[bool] = []
    found: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        inside.append(name == "metadata" and attributes.get("id") == "provenance")

    def end(name: str) -> None:
        inside.pop()

    def characters(data: str) -> None:
        if inside and inside[-1]:
            found.append(data)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = _refuse_entities
    parser.Parse(read_whole(file), True)
    return "".join(found) or None


def _refuse_entities(*declaration: Any) -> None:
    # Entities that expand one another can fill any memory, and drawings need none.
    raise ValueError("it declares entities")
