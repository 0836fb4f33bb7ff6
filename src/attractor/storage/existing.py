"""Whether a file that is to be read is there; asked before anything long is loaded to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attractor.checks import check_path
from attractor.errors import InvalidInputError


def existing_file(path: Any, remedy: str = "Give the name of a file") -> Path:
    """The file at a path.

    Args:
        path: The path.
        remedy: What to do where there is none.

    Raises:
        InvalidInputError: If it is no path, or there is no file.
    """
    file = check_path("path", path)
    if not file.is_file():
        raise InvalidInputError("file", f"there is no file {file}", remedy)
    return file
