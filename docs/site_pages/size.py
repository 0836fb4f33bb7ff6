"""A site that takes less space: nothing is lost that a reader sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from PIL import Image

_UNCOLORED = re.compile(r'<span class="[nopw]">([^<]*)</span>')
"""Names, operators, punctuation and blanks, half of a page of source."""
_BACK = re.compile(r'<a class="viewcode-back"[^>]*>[^<]*</a>')
"""Links back to the reference: they name the page that one name of a module is on for all."""

_PICTURE = re.compile(r'((?:src|href)="[^"]*_images/[^"/]+)\.png"')


def _plain_source(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if page.startswith("_modules/"):
        context["body"] = _BACK.sub("", _UNCOLORED.sub(r"\1", context["body"]))
    elif "body" in context:
        context["body"] = _PICTURE.sub(r'\1.webp"', context["body"])


def _smaller_pictures(app: Any, failure: Exception | None) -> None:
    """Writes PNG as WebP without loss, in less than half of the space, as pages name it."""
    for path in (Path(app.outdir) / "_images").glob("*.png"):
        with Image.open(path) as picture:
            picture.save(path.with_suffix(".webp"), lossless=True, method=6)
        path.unlink()


def _without_source_maps(app: Any, failure: Exception | None) -> None:
    """Removes what only a debugger of the theme's scripts would read."""
    for path in Path(app.outdir).rglob("*.map"):
        path.unlink()


def connect(app: Any) -> None:
    """Makes pages of source and pictures smaller, and leaves out source maps."""
    app.connect("html-page-context", _plain_source)
    app.connect("build-finished", _without_source_maps)
    app.connect("build-finished", _smaller_pictures)
