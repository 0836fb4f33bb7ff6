"""The pictures of README and guides on one page, each with its caption and its place."""

from __future__ import annotations

import re
from pathlib import Path

_PICTURE = re.compile(
    r"^!\[([^]]*)\]\((?:docs/)?(images/[\w.]+)\)(?:\n\n(\*[^*].*?\*)\n)?", re.M | re.S
)
_TITLE = re.compile(r"^# (.*)$", re.M)


def pictures(docs: Path) -> dict[str, tuple[str, str, Path]]:
    """Alternative text, caption and file of every picture that is there, by its path.

    A picture that several files show has the caption of the first; README comes first.
    """
    found: dict[str, tuple[str, str, Path]] = {}
    for file in [docs.parent / "README.md", *sorted(docs.glob("*.md"))]:
        for words, picture, caption in _PICTURE.findall(file.read_text("utf-8")):
            if (docs / picture).exists():
                found.setdefault(picture, (words, caption, file))
    return found


def gallery_page(docs: Path) -> str:
    """The page."""
    text = "# Gallery\n\nEvery picture of the documentation, and what draws it.\n\n"
    for picture, (words, caption, file) in pictures(docs).items():
        text += f"![{words}](../{picture})\n\n{_moved(caption) or words}"
        if file.parent == docs:
            title = _TITLE.search(file.read_text("utf-8"))
            text += f"\\\nFrom [{title[1] if title else file.stem}](../{file.name})."
        text += "\n\n"
    return text


def _moved(caption: str) -> str:
    return re.sub(r"\]\((?:docs/)?(\w+\.md)", r"](../\1", caption)
