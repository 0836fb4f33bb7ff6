"""The hidden folder beside a destination in which one writer works, and leftovers of dead ones.

``.NAME.partial-XXXXXXXX`` holds ``new/NAME``, which is being written, and while a folder is swapped
for a newer one ``old/NAME``. Its writer holds a lock on it, by which others see that it lives.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attractor.support.storage.locks import locked

PARTIAL = ".partial-"
_RANDOM = "[a-z0-9_]{8}"
_LONGEST = 200
"""Bytes of a name that are repeated in the name of a workplace: file systems allow 255 in all."""

_live: dict[Path, int] = {}
"""The workplaces in use, each with the process that uses it: forked children inherit the table."""


@contextlib.contextmanager
def workplace(destination: Path) -> Iterator[Path]:
    """Makes a folder beside a destination and removes it after the block.

    Before, leftovers of dead writers of the same destination are removed. After, a folder that was
    moved away to make place, and whose place is still empty, is put back.

    Args:
        destination: What is to be written; its folder is made.

    Yields:
        The folder. It holds an empty folder ``new``.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(destination)
    with contextlib.ExitStack() as stack:
        folder = _claim(destination, stack)
        _live[folder] = os.getpid()
        try:
            (folder / "new").mkdir()
            yield folder
        finally:
            _discard(folder)
            _live.pop(folder, None)


def remove_leftovers(destination: Path) -> None:
    """Removes what killed writers of a destination left, and puts back a folder they moved away.

    What a living writer holds stays, and everything does where the system has no locks.
    """
    name = re.escape(_short(destination.name))
    own = re.compile(rf"\.{name}\.(?:partial|old)-{_RANDOM}")
    stem, ending = re.escape(destination.stem), re.escape(destination.suffix)
    earlier = re.compile(rf"\.{stem}\.partial-{_RANDOM}{ending}")  # files, up to version 0.1
    try:
        found = os.listdir(destination.parent)
    except PermissionError:  # a folder to write to but not to list
        return
    for entry in found:
        if not (own.fullmatch(entry) or earlier.fullmatch(entry)):
            continue
        path = destination.parent / entry
        with contextlib.suppress(OSError), locked(path) as alone:
            if alone:
                _discard(path, destination)


def discard_unfinished() -> None:
    """Removes what this process is writing, so that it can end at once."""
    for folder, process in list(_live.items()):
        if process == os.getpid():
            _discard(folder)


def _claim(destination: Path, stack: contextlib.ExitStack) -> Path:
    """Makes a workplace and holds it as long as the stack is open."""
    prefix = f".{_short(destination.name)}{PARTIAL}"
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=destination.parent))
        holding = contextlib.ExitStack()
        # Until it is held it looks like that of a dead writer, and another process may remove it.
        with contextlib.suppress(FileNotFoundError):
            alone = holding.enter_context(locked(folder))
            if alone is None or (alone and folder.exists()):
                stack.push(holding)
                return folder
        holding.close()


def _discard(folder: Path, destination: Path | None = None) -> None:
    """Removes a workplace, or what an earlier version left; first saves what was moved away."""
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    old = folder / "old"
    moved = {kept: folder.parent / kept.name for kept in old.glob("*")}
    if destination is not None and folder.name.startswith(f".{destination.name}.old-"):
        moved = {old: destination}  # as it was up to version 0.1
    for kept, place in moved.items():
        while kept.exists() and not os.path.lexists(place):
            try:
                os.rename(kept, place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    return  # better left over than lost; else another writer's has come in between
    shutil.rmtree(folder, ignore_errors=True)


def _short(name: str) -> str:
    """The beginning of a name, where all of it would be too long."""
    while len(os.fsencode(name)) > _LONGEST:
        name = name[:-1]
    return name
