"""Pages for files that stand outside of the folder of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def project_pages(root: Path) -> dict[str, str]:
    """How to contribute and what changed, with links as they are from here.

    Args:
        root: The folder of the project.
    """
    return {page: _moved((root / file).read_text("utf-8")) for file, page in _PAGES.items()}


def _moved(text: str) -> str:
    return re.sub(r"\]\(docs/", "](../", text)
