"""Pages for files that stand outside of the folder of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def project_pages(root: Path) -> dict[str, str]:
    """How to contribute and what changed, with links as they are from here.

    Args:
        root: The folder of the project.
    """
    return {page: _moved((root / file).read_text("utf-8")) for file, page in _PAGES.items()}


def _links_of_guides(app: Any, document: str, source: list[str]) -> None:
    """Leads links of guides to files outside of their folder to the pages made for those."""
    for file, page in _PAGES.items():
        source[0] = source[0].replace(f"](../{file}", f"](generated/{page}")


def connect(app: Any) -> None:
    """Reads guides as they are here."""
    app.connect("source-read", _links_of_guides)


def _moved(text: str) -> str:
    return re.sub(r"\]\(docs/", "](../", text)
