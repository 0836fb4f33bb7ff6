"""Folders of results that are kept, and whose they are."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attractor.support.errors import InvalidInputError
from attractor.support.storage.atomic import write_file
from attractor.support.storage.locks import locked
from attractor.support.storage.markers import CHECKPOINT
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


_UNFINISHED = ".unfinished-"
_LONGEST = 150
"""Letters of a name that are repeated in the name of the folder."""


@contextlib.contextmanager
def kept_beside(
    destination: str | os.PathLike[str] | None, asked: Mapping[str, Any]
) -> Iterator[Path | None]:
    """Holds the folder of what is done of a command, for this run alone.

    It stays if the block ends in an exception, of which there is none where a process is killed.
    After the block it goes, and so does what other commands kept beside the same output.

    Args:
        destination: What the command writes; None keeps nothing.
        asked: All that the answers depend on, as plain values of JSON.

    Yields:
        The folder, or None.

    Raises:
        InvalidInputError: If another run of the same command holds it.
        WriteError: If it cannot be written.
    """
    if destination is None:
        yield None
        return
    target = Path(os.path.realpath(destination))
    text = json.dumps(asked, indent=1, sort_keys=True, default=str) + "\n"
    name = f".{target.name[:_LONGEST]}{_UNFINISHED}"
    own = target.parent / f"{name}{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    with owned_folder(own, CHECKPOINT, argument="out") as folder:
        if not (folder / CHECKPOINT).exists():
            write_file(folder / CHECKPOINT, text)
        try:
            yield folder
        finally:
            if set(os.listdir(folder)) == {CHECKPOINT}:  # nothing was done yet
                shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
    for entry in os.listdir(target.parent):
        other = target.parent / entry
        if entry.startswith(name) and other.is_dir() and not other.is_symlink():
            with contextlib.suppress(OSError), locked(other) as alone:
                if alone:
                    shutil.rmtree(other, ignore_errors=True)
