"""Holding a file or folder for one writer; the system lets go of it however the writer ends."""

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
    """Holds a file or folder, unless somebody else does.

    Threads of one process hold it against each other, too.

    Args:
        path: What to hold; it exists.

    Yields:
        Whether it is held now; None where the file system cannot tell (Windows, some networks).

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
