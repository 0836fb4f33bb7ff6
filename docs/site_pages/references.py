"""Names of claims and figures in guides become links to what is said of them."""

from __future__ import annotations

import re
from typing import Any

from attractor.papers import all_claims, all_figures
from attractor.papers.ledger.places import places
from site_pages.papers import link_to

_FOLDERS = "|".join(places())
# A fence, which is left as it is, or a name in code that is no link yet.
_NAME = re.compile(rf"^```.*?^```|(?<![`\[])`((?:{_FOLDERS})/[\w-]+)`", re.M | re.S)


def names_in(text: str) -> list[str]:
    """What a page writes in code like a claim or a figure, known or not, links included."""
    return re.findall(rf"(?<!`)`((?:{_FOLDERS})/[\w-]+)`", text)


def with_links(text: str, folder: str) -> str:
    """The text with a link at every name of a claim or figure that is in code.

    Args:
        text: Markdown.
        folder: Where the pages of the papers lie, seen from the page.
    """
    known = {*all_claims(), *all_figures()}
    return _NAME.sub(
        lambda found: link_to(found[1], folder) if found[1] in known else found[0], text
    )


def _links(app: Any, document: str, source: list[str]) -> None:
    if not document.startswith("generated/"):
        source[0] = with_links(source[0], "../" * document.count("/") + "generated/papers/")


def connect(app: Any) -> None:
    """Reads guides with such links."""
    app.connect("source-read", _links)
