"""A block of data in the head of an HTML page; no browser runs it."""

from __future__ import annotations

import re
from pathlib import Path

from attractor.support.containers import read_whole

_OPEN = '<script type="application/json" id="provenance">'
_OURS = re.compile(re.escape(_OPEN) + r"[^<]*</script>\n")


def insert(file: Path, text: str) -> bytes:
    """The page with a text of JSON before the tag that ends the head."""
    page = _OURS.sub("", file.read_bytes().decode("utf-8"))
    start, end, rest = page.partition("</head>")
    if not end:
        raise ValueError("it has no </head>")
    escaped = text.replace("<", r"\u003c")  # or "</script>" in a text would end the block
    return f"{start}{_OPEN}{escaped}</script>\n{end}{rest}".encode()


def read(file: Path) -> str | None:
    """The text, or None; no more of the page is parsed than the block as it is written here."""
    head, _, _ = read_whole(file).decode("utf-8").partition("</head>")
    _, found, rest = head.partition(_OPEN)
    text, end, _ = rest.partition("</script>")
    if found and not end:
        raise ValueError("its provenance does not end")
    return text if found else None
