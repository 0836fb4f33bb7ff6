"""The explorer on pages that have one: its script is loaded by them alone."""

from __future__ import annotations

from typing import Any


def _load(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if "data-attractor-explorer" in context.get("body", ""):
        # A classic script: browsers load no module from a page that was opened from disk.
        app.add_js_file("explorer.js", loading_method="defer")


def connect(app: Any) -> None:
    """Loads the script of the explorer on pages that have one."""
    app.connect("html-page-context", _load)
