"""Pages for what stands outside of the documentation, or is no page, and the links to them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_COPIED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PAGES = _COPIED | {
    "docs/found_wrong.toml": "found_wrong.md",
    "src/attractor/heads/audit/summary.py": "audit_words.md",
    "src/attractor/cli": "commands/index.md",
    "src/attractor/support/errors.py": "statuses.md",
    "src/attractor/papers": "papers/index.md",
    "src/attractor/public.py": "api/index.md",
}
"""What a page is made from, by which guides link to it: that is what there is in a checkout."""
_COMMAND = re.compile(r"src/attractor/cli/commands/(\w+)\.py")
_LINK = re.compile(r"\]\(([^)\s#:]+)")


def project_pages(root: Path) -> dict[str, str]:
    """How to contribute and what changed, with links as they are from here.

    Args:
        root: The folder of the project.
    """
    return {page: _moved((root / file).read_text("utf-8")) for file, page in _COPIED.items()}


def with_pages(text: str, document: str) -> str:
    """The text with links to pages in place of links to what those are made from.

    Args:
        text: Markdown.
        document: The page that it is of, such as ``theory/norms``.
    """

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(document), link[1]))
        command = _COMMAND.fullmatch(target)
        page = f"commands/{command[1]}.md" if command else PAGES.get(target)
        return f"]({'../' * document.count('/')}generated/{page}" if page else link[0]

    return _LINK.sub(moved, text)


def _links_of_guides(app: Any, document: str, source: list[str]) -> None:
    if not document.startswith("generated/"):
        source[0] = with_pages(source[0], document)


def connect(app: Any) -> None:
    """Reads guides with such links."""
    app.connect("source-read", _links_of_guides)


def _moved(text: str) -> str:
    return re.sub(r"\]\(docs/", "](../", text)
