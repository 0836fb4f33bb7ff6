"""No page reads anything from a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_READ = ("src", "srcset", "href", "data", "poster", "action")
_OUTSIDE = re.compile(r"\s*(?:https?:)?//")
_IN_STYLES = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)")


class _References(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag reads from outside; plain links are for people to follow."""
        self.found += [
            value
            for name, value in attrs
            if tag != "a" and name in _READ and value and _OUTSIDE.match(value)
        ]


def outside_references(text: str) -> list[str]:
    """Addresses outside of the site that a page or a style sheet reads by itself."""
    parser = _References()
    parser.feed(text)
    return parser.found + _IN_STYLES.findall(text)


def _check(app: Any, failure: Exception | None) -> None:
    """Raises an error that names the pages and what they read."""
    from sphinx.errors import ExtensionError

    folder = Path(app.outdir)
    pages = [*folder.rglob("*.html"), *folder.rglob("*.css")]
    found = {path: outside_references(path.read_text("utf-8")) for path in pages}
    bad = {str(path.relative_to(folder)): some for path, some in found.items() if some}
    if bad and failure is None:
        raise ExtensionError(f"read from outside: {bad}")


def connect(app: Any) -> None:
    """Checks every page once they are written."""
    app.connect("build-finished", _check)
