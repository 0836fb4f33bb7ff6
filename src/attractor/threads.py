"""Independent pieces of work, side by side in threads.

NumPy and XLA let go of Python's lock while they compute, so that threads are enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[tuple[_Item, _Result]]:
    """Does the work on every item, as many at once as there are processors.

    An exception, or leaving early, drops the items not yet started.

    Yields:
        Each item with its result, in the order in which they are done.
    """
    pieces = list(items)
    if len(pieces) <= 1 or processors() == 1:
        yield from ((item, work(item)) for item in pieces)
        return
    pool = ThreadPoolExecutor(min(len(pieces), processors()))
    try:
        started = {pool.submit(work, item): item for item in pieces}
        for done in as_completed(started):
            yield started[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)
