"""Folders that one run keeps for itself."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from attractor.support.errors import InvalidInputError
from attractor.support.storage.locks import locked
from attractor.support.storage.paths import check_replaceable
from attractor.support.storage.workplace import PARTIAL


@contextlib.contextmanager
def owned_folder(path: str | os.PathLike[str], marker: str, *, argument: str) -> Iterator[Path]:
    """Makes a folder and holds it for this run alone, and removes what killed writes left in it.

    The operating system lets go of the folder when the process ends, however it ends. Where it
    offers no such locks (Windows, some network file systems) two runs are not kept apart.

    Args:
        path: The folder; it need not exist.
        marker: Name of the file by which a folder of ours is known.
        argument: The name to use in the error.

    Yields:
        The folder.

    Raises:
        InvalidInputError: If the folder is not ours, or another run holds it.
    """
    folder = check_replaceable(path, marker, argument=argument)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder) as alone:
        if alone is False:
            raise InvalidInputError(
                argument, f"another run is writing to {folder}", "Wait for it, or end it"
            )
        for leftover in folder.glob(f".*{PARTIAL}*"):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()
        yield folder
