"""Locks of files and folders for one writer, which the system releases however it ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool | None]:
    """Locks a file or folder, unless another writer holds its lock.

    Threads of one process exclude each other, too.

    Args:
        path: The file or folder; it exists.

    Yields:
        Whether the lock is held now; None where the file system has none (Windows, some networks).

    Raises:
        OSError: If the path cannot be opened.
    """
    if fcntl is None:
        yield None
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            yield None
            return
        try:
            yield True
        finally:
            # Closing alone would leave it held by forked children, who share the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
