"""Findings that are known and not mended yet: a line each in ``known.txt``, tab-separated."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def known_findings() -> frozenset[tuple[str, str, str]]:
    """Callable, parameter and value of each."""
    lines = Path(__file__).with_name("known.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(tuple(line.split("\t")[:3]) for line in lines)
