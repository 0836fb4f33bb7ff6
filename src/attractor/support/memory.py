"""Refusing what does not fit into memory before the work begins."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attractor.support.errors import InvalidInputError

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
            f"{what} would take about {_amount(needed)} of memory; "
            f"{_amount(available)} are available",
            remedy(available),
        )


def require_memory_for(
    argument: str, count: int, what: str, *, each: float, besides: float = 0.0, otherwise: str
) -> None:
    """Refuses a number of things that do not fit into memory; the error names how many would.

    Args:
        argument: The argument that is the number.
        count: The number.
        what: What they are.
        each: Bytes of each.
        besides: Bytes needed besides.
        otherwise: What to do where not even one would fit.

    Raises:
        InvalidInputError: If there is less memory.
    """

    def remedy(available: float) -> str:
        fitting = int((available - besides) // each)
        return f"Give at most {fitting:,}" if fitting >= 1 else otherwise

    require_memory(argument, f"{count:,} {what}", needed=each * count + besides, remedy=remedy)


def require_memory_for_list(argument: str, value: Any, *, each: float) -> None:
    """Refuses a list, a range or an array that does not fit once it is written out.

    Args:
        argument: The argument that it is.
        value: What was given; what has no length passes.
        each: Bytes that an entry takes, copies included.

    Raises:
        InvalidInputError: If there is less memory.
    """
    try:
        count = math.prod(value.shape) if hasattr(value, "shape") else len(value)
    except OverflowError:  # a range, whose length no C integer holds
        count = -((value.start - value.stop) // value.step)
    except TypeError:
        return
    otherwise = "Give less: not even one entry would fit"
    require_memory_for(argument, count, "entries", each=each, otherwise=otherwise)


def available_memory() -> float | None:
    """Bytes that can be had; all there are where the system says no more; None if not even that."""
    return min((bytes_ for bytes_ in (_of_system(), _of_container()) if bytes_), default=None)


def _amount(size: float) -> str:
    return f"{size / 1e12:,.1f} TB" if size >= 1e12 else f"{size / 1e9:.1f} GB"


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
