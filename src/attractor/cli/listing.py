"""Names with a line each."""

from __future__ import annotations

from collections.abc import Mapping


def listing(lines: Mapping[str, str]) -> list[str]:
    """Names and what they are, a line each."""
    width = max(map(len, lines), default=0)
    return [f"{name:<{width}}  {line}" for name, line in lines.items()]
