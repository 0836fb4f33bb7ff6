"""Independent pieces of work, side by side in threads; how many, from one place.

NumPy and XLA let go of Python's lock while they compute, so that threads are enough. Results are
the same bits whatever the number of threads.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

VARIABLE = "ATTRACTOR_THREADS"
_MOST = 4096
_chosen: contextvars.ContextVar[int | None] = contextvars.ContextVar("threads", default=None)


def use_threads(count: int) -> contextlib.AbstractContextManager[None]:
    """Works in at most so many threads inside a ``with`` block.

    It holds for training, paths and solvers, in the thread that enters the block and in those that
    these start; other threads of the program are left alone. Blocks nest: the innermost counts.
    Without a block the environment variable ``ATTRACTOR_THREADS`` does, and without that the number
    of processors this process may use. No choice changes a bit of any result.

    One more level of threads is not counted: work done in threads, such as runs on prompts of
    several lengths, may train each of its runs in as many. The pools of XLA and of the BLAS
    libraries are their own, set by ``NPROC`` and ``OPENBLAS_NUM_THREADS``; inside solves BLAS has
    one thread.

    Args:
        count: The number of threads; 1 does everything in the thread that asks for it, but for
            training, which has one of its own.

    Returns:
        A context manager.

    Raises:
        InvalidInputError: If the number is no count.
    """
    return _using(check_count("count", count, most=_MOST))


@contextlib.contextmanager
def _using(count: int) -> Iterator[None]:
    before = _chosen.get()
    _chosen.set(count)
    try:
        yield
    finally:
        _chosen.set(before)


def number_of_threads() -> int:
    """Threads to work in: of the innermost ``use_threads``, else ``ATTRACTOR_THREADS``, else all.

    Raises:
        InvalidInputError: If the environment variable is no count.
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return processors()
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST):
        raise InvalidInputError(
            VARIABLE,
            f"the environment variable is {text!r}",
            f"Set it to a whole number from 1 to {_MOST}, or not at all",
        )
    return int(text)


def processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[tuple[_Item, _Result]]:
    """Does the work on every item, as many at once as ``number_of_threads`` says.

    An exception, or leaving early, drops the items not yet started.

    Yields:
        Each item with its result, in the order in which they are done.
    """
    pieces = list(items)
    workers = min(len(pieces), number_of_threads())
    if workers <= 1:
        yield from ((item, work(item)) for item in pieces)
        return
    pool = ThreadPoolExecutor(workers)
    work = under_the_same_settings(work)
    try:
        started = {pool.submit(work, item): item for item in pieces}
        for done in as_completed(started):
            yield started[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def under_the_same_settings(work: Callable[..., _Result]) -> Callable[..., _Result]:
    """The work, done in whatever thread under the settings of the thread that calls this."""
    settings = contextvars.copy_context()

    def done_there(*arguments: Any) -> _Result:
        return settings.copy().run(work, *arguments)  # of one context, one thread at a time

    return done_there
