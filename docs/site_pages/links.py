"""Whether every link of the built pages leads somewhere, without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NO_LINK = re.compile(r'(?<!>)<code class="xref py[^>]*>(.*?)</code>', re.S)
_LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}


class _Page(HTMLParser):
    """The links of a page and the places in it that links can lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = {"", "top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := found.get(name))}
        if (link := found.get(_LINKS.get(tag, ""))) is not None:
            self.links.append(link)


def dead_links(folder: Path) -> tuple[int, int, list[str]]:
    """The numbers of pages and of links within them, and the links that lead nowhere.

    Args:
        folder: The built pages.
    """
    pages = {path: _Page() for path in sorted(folder.rglob("*.html"))}
    pages = {path: page for path, page in pages.items() if "_static" not in path.parts}
    for path, page in pages.items():
        page.feed(path.read_text("utf-8"))
    count, dead = 0, []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            known = pages.get(target)
            if place.startswith("explorer:"):  # a scene, which the explorer of the page opens
                place = ""
            if not target.is_file() or (known and place not in known.places):
                dead.append(f"{path.relative_to(folder)}: {link}")
    return len(pages), count, dead


def names_without_link(folder: Path) -> list[str]:
    """Names of the library in guides that no page of the reference describes.

    Args:
        folder: The built pages.
    """
    return [
        f"{path.relative_to(folder)}: {re.sub('<.*?>', '', name)}"
        for path in sorted(folder.rglob("*.html"))
        if not {"_static", "_modules", "api"} & set(path.relative_to(folder).parts)
        for name in _NO_LINK.findall(path.read_text("utf-8"))
    ]
