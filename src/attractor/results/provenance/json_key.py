"""A key of a JSON object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attractor.support.containers import parse_json, read_whole

_KEY = "provenance"


def insert(file: Path, text: str) -> bytes:
    """The file with a text of JSON under the key, as what it says and not as a text."""
    contents = _contents(file)
    contents[_KEY] = json.loads(text)
    return (json.dumps(contents, indent=2) + "\n").encode()


def read(file: Path) -> str | None:
    """The text, or None."""
    contents = _contents(file)
    return json.dumps(contents[_KEY]) if _KEY in contents else None


def _contents(file: Path) -> dict[str, Any]:
    contents = parse_json(read_whole(file))
    if not isinstance(contents, dict):
        raise ValueError("it holds no JSON object")
    return contents
