"""Refusing what does not fit into memory before the work begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from attractor.errors import InvalidInputError

_GROUPS = Path("/sys/fs/cgroup")
"""Where Linux keeps the limits of a container."""
_TRIFLE = 2**26
"""Bytes that are not worth asking the system about."""


def require_memory(
    argument: str, what: str, *, needed: float, remedy: Callable[[float], str]
) -> None:
    """Refuses what needs more memory than there is.

    Args:
        argument: The name to use in the error.
        what: What needs the memory.
        needed: Bytes, beyond those in use.
        remedy: What to do instead, given the bytes that are available.

    Raises:
        InvalidInputError: If there is less.
    """
    if needed < _TRIFLE:
        return
    available = available_memory()
    if available is not None and needed > available:
        raise InvalidInputError(
            argument,
            f"{what} would take about {needed / 1e9:.1f} GB of memory; "
            f"{available / 1e9:.1f} GB are available",
            remedy(available),
        )


def available_memory() -> float | None:
    """Bytes that can be had without swapping; None where the system does not say."""
    return min((bytes_ for bytes_ in (_of_system(), _of_container()) if bytes_), default=None)


def _of_system() -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not POSIX
        return None


def _of_container() -> float | None:
    try:
        limit = int((_GROUPS / "memory.max").read_text())
        return float(max(limit - int((_GROUPS / "memory.current").read_text()), 1))
    except (OSError, ValueError):  # no container, or "max"
        return None
