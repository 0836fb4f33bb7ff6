"""The files by which a folder of ours is known, which may then be replaced or resumed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

REPORT = "report.html"
"""The page of a report; a folder that holds one may be replaced by a newer report."""
CHECKPOINT = "attractor-checkpoint.json"
"""The identity of the run of a checkpoint folder."""
AUDIT = "audit.nc"
"""What an audit of heads found, as labeled arrays; its folder may be replaced by a newer audit."""
BASINS = "shares.nc"
"""Where random starts ended; its folder may be replaced by a newer one of ``attractor basins``."""

_MADE_BY = '<meta name="generator" content="attractor {}">'
_EARLIER = '<script type="application/json" id="provenance">'
"""What pages of earlier versions say of themselves begins so."""
_NAME = "[a-z][a-z -]{0,40}"
"""How a command is named."""


def made_by(command: str) -> str:
    """The line of a page's head that names the command whose report it is."""
    return _MADE_BY.format(command)


def written_by(folder: Path) -> str | None:
    """The command whose report a folder holds, as its page says; None where none does."""
    for page in sorted(folder.glob("*.html")):
        if not page.is_file():  # a pipe would be waited for
            continue
        try:
            said = _said(page.read_text(encoding="utf-8").partition("</head>")[0])
        except (OSError, ValueError, AttributeError):  # no page of ours, or a damaged one
            continue
        if isinstance(said, str) and re.fullmatch(_NAME, said):
            return said
    return None


def _said(head: str) -> Any:
    """What the head of a page says made it."""
    found = re.search(_MADE_BY.format(f"({_NAME})"), head)
    if found:
        return found[1]
    _, earlier, rest = head.partition(_EARLIER)
    record = json.loads(rest.partition("</script>")[0]) if earlier else {}
    return "claims" if record.get("kind") == "claim" else record.get("name")
