"""The explorer on pages that have one: its script is loaded by them alone."""

from __future__ import annotations

from typing import Any


def _load(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if "data-attractor-explorer" in context.get("body", ""):
        app.add_js_file("explorer.js", type="module")


def connect(app: Any) -> None:
    """Loads the script of the explorer on pages that have one."""
    app.connect("html-page-context", _load)
