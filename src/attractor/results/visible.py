"""Characters that do not show, or steer what shows them, written out as Python writes them."""

from __future__ import annotations

import re

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but the tab and the end of a line
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # which way text runs
    "\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Text in which such characters stand as ``\x1b`` or ``\u202e``: words come from files."""
    return UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)
