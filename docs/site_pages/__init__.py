"""Pages of the documentation that are made from the library: its names, commands, papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from site_pages import docstrings, explorer, offline, project, references, size, tutorials
from site_pages.api import api_pages
from site_pages.audit_words import audit_words_page
from site_pages.commands import command_pages
from site_pages.found_wrong import found_wrong_page, links_to_found
from site_pages.gallery import gallery_page
from site_pages.papers import paper_pages
from site_pages.project import project_pages
from site_pages.statuses import statuses_page

FOLDER = "generated"
"""Where the pages lie, in the folder of the documentation."""


def all_pages(docs: Path) -> dict[str, str]:
    """The text of every page by its path in ``FOLDER``.

    Args:
        docs: The folder of the documentation.
    """
    return {
        **api_pages(),
        **command_pages(),
        **paper_pages(links_to_found(docs)),
        "found_wrong.md": found_wrong_page(docs),
        "statuses.md": statuses_page(),
        "audit_words.md": audit_words_page(),
        "gallery.md": gallery_page(docs),
        **project_pages(docs.parent),
    }


def _write(app: Any, config: Any) -> None:
    """Writes the pages that changed, and removes those that are no more."""
    docs = Path(app.srcdir)
    pages = {docs / FOLDER / path: text for path, text in all_pages(docs).items()}
    for path in (docs / FOLDER).rglob("*.*"):
        if path not in pages:
            path.unlink()
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Writes the pages before Sphinx looks for documents, and reads docstrings as written here."""
    app.connect("config-inited", _write)
    docstrings.connect(app)
    explorer.connect(app)
    project.connect(app)
    references.connect(app)
    tutorials.connect(app)
    size.connect(app)
    offline.connect(app)
    return {"parallel_read_safe": False}
