"""One file with the explorer in it, which needs nothing but a browser."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from importlib import resources
from typing import Any

from attractor.explorer.state import check_state
from attractor.results.visible import visible
from attractor.support.checks import naming

TITLE = "Drag a token, watch the attractor move"

_STYLE = """
:root { color-scheme: SCHEME; }
body { margin: 0; padding: clamp(.6rem, 3vw, 1.8rem); font: 15px/1.5 system-ui, sans-serif;
       background: #fff; color: #1b1b1b; }
@media (prefers-color-scheme: dark) { body { background: #0f1317; color: #e4e6e8; } }
main { max-width: 64rem; margin: auto; }
"""
_DARK = "body { background: #0f1317; color: #e4e6e8; }"
_LIGHT = "body { background: #fff; color: #1b1b1b; }"


@cache
def script() -> str:
    """What a page runs; it leaves ``attractorExplorer``, which notebooks render."""
    folder = resources.files("attractor.explorer")
    return folder.joinpath("static", "explorer.js").read_text("utf-8")


def page_of(state: dict[str, Any], title: str | None = None) -> str:
    """A page that shows a state.

    Its policy lets it run this one script and nothing else, and refuses every request.

    Args:
        state: What it shows.
        title: Its title; default: that of the state.

    Raises:
        InvalidInputError: If it is no state: the page itself would refuse it.
    """
    with naming(**{"state.title": "title"}):
        state = check_state(state if title is None else state | {"title": visible(title)})
    title = str(state.get("title") or TITLE)
    code = "\n" + script().replace("</script", "<\\/script").replace("<!--", "<\\!--") + "\n"
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    theme = str(state["theme"])
    scheme = "light dark" if theme == "auto" else theme
    style = _STYLE.replace("SCHEME", scheme) + {"dark": _DARK, "light": _LIGHT}.get(theme, "")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="{scheme}">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{style}</style>
<main>
<div data-attractor-explorer>
<script type="application/json">{embedded(state)}</script>
</div>
</main>
<script>{code}</script>
</html>
"""


def embedded(state: dict[str, Any]) -> str:
    """A state as JSON that may stand within a page."""
    return json.dumps(state, allow_nan=False).replace("<", "\\u003c")
