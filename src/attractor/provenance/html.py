"""A block of data in the head of an HTML page; no browser runs it."""

from __future__ import annotations

import html.parser
import re
from pathlib import Path

_OPEN = '<script type="application/json" id="provenance">'
_OURS = re.compile(re.escape(_OPEN) + r"[^<]*</script>\n")


def write(file: Path, text: str) -> None:
    """Puts a text of JSON before the tag that ends the head."""
    page = _OURS.sub("", file.read_bytes().decode("utf-8"))
    start, end, rest = page.partition("</head>")
    if not end:
        raise ValueError("it has no </head>")
    escaped = text.replace("<", r"\u003c")  # or "</script>" in a text would end the block
    file.write_bytes(f"{start}{_OPEN}{escaped}</script>\n{end}{rest}".encode())


def read(file: Path) -> str | None:
    """The text, or None."""
    finder = _Finder()
    finder.feed(file.read_bytes().decode("utf-8"))
    finder.close()
    return "".join(finder.found) or None


class _Finder(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and ("id", "provenance") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found.append(data)
