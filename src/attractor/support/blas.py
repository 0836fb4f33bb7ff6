"""Linear algebra libraries limited to one thread each."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import threadpoolctl


@contextlib.contextmanager
def single_blas_thread() -> Iterator[None]:
    """Limits every BLAS pool to one thread inside the block.

    NumPy and SciPy each bring a pool of their own; two that fight over the same cores cost far
    more than the second thread of either gains. A pool belongs to the whole process: it gets its
    threads back when the last block of any thread ends.
    """
    with _blas_lock:
        own, shared = _blas_pools()
    with own.limit(limits=1, user_api="blas"), shared:
        yield


_blas_lock = threading.RLock()
_release_pools: Any = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
"""From 3.8 on threadpoolctl lets one thread alone resize OpenBLAS, until this is called."""


class _SharedPools:
    """Pools that all threads share, and the number of blocks that limit them to one thread."""

    def __init__(self, pools: list[threadpoolctl.LibController]) -> None:
        self._pools, self._sizes = pools, [1] * len(pools)
        self._holds, self._held_here = 0, threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_blas_lock.acquire,
                after_in_parent=_blas_lock.release,
                after_in_child=self._begin_in_child,
            )

    def __enter__(self) -> None:
        with _blas_lock:
            if not self._holds:
                self._sizes = [pool.num_threads for pool in self._pools]
                self._resize([1] * len(self._pools))
            self._count(1)

    def __exit__(self, *_: object) -> None:
        with _blas_lock:
            self._count(-1)
            if not self._holds:
                self._resize(self._sizes)

    def _count(self, change: int) -> None:
        self._holds += change
        self._held_here.holds = getattr(self._held_here, "holds", 0) + change

    def _resize(self, sizes: Sequence[int | None]) -> None:
        if _release_pools:  # whichever thread set them last
            _release_pools(force=True)
        for pool, size in zip(self._pools, sizes, strict=True):
            pool.set_num_threads(size)
        if _release_pools:
            _release_pools()

    def _begin_in_child(self) -> None:
        """Forgets the blocks of all threads but the one that forked: no other lives on."""
        held, self._holds = self._holds, getattr(self._held_here, "holds", 0)
        if held and not self._holds:
            self._resize(self._sizes)
        _blas_lock.release()


@functools.cache
def _blas_pools() -> tuple[threadpoolctl.ThreadpoolController, _SharedPools]:
    """The pools of this process: those that each thread has for itself, and those shared.

    Looking for them anew each time would take milliseconds.
    """
    import scipy.linalg  # noqa: F401 - loads its pool before pools are looked for

    found = threadpoolctl.ThreadpoolController()
    blas = found.select(user_api="blas").lib_controllers
    own = [  # the same version began to size OpenBLAS on OpenMP a thread at a time
        pool.filepath
        for pool in blas
        if _release_pools and getattr(pool, "threading_layer", None) == "openmp"
    ]
    return found.select(filepath=own), _SharedPools([p for p in blas if p.filepath not in own])
