"""The JSON object of ``--json``: one line, printed once, however a command ends."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

printed = False
"""Whether it is printed; a signal that comes later prints none."""


def answer_line(command: str | None, exit_code: int, found: Mapping[str, Any]) -> str:
    """The object as a line.

    Args:
        command: The name of the command; None where none could be read.
        exit_code: What it ends with.
        found: What it found, or ``failure``.
    """
    contents = {"command": command, "exit_code": int(exit_code), **found}
    return json.dumps(_finite(contents), allow_nan=False) + "\n"


def failure(message: str, **parts: str | None) -> dict[str, Any]:
    """What stands in the object of a command that failed.

    Args:
        message: What is printed of it.
        parts: ``argument``, ``problem`` and ``remedy``, where an argument is to blame.
    """
    return {"error": {"message": message, **parts}}


def _finite(value: Any) -> Any:
    """A value with None in place of numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
