"""Chunks on processes of this machine, each at the end of a pipe of its own: nothing listens.

A process has one chunk at a time, so that it is known which chunk ended one.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from attractor.maps.sweeps.dispatch import Patience, Programs
from attractor.maps.sweeps.grid import Chunk
from attractor.maps.sweeps.storage.layout import Layout
from attractor.maps.sweeps.work import HANGS, Job, Outcome, require_same_source, run_chunk
from attractor.support.errors import InvalidInputError

_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""What processes start with. Without the first, Python looks for its own modules in the current
folder before it looks where they are; processes, not linear algebra, share the processors."""
_STARTS = 3
"""Starts that may fail one after the other."""
_FAREWELL = 5.0
"""Seconds in which a process ends by itself, and takes what it shares with others with it."""
_LOOK = 60.0
_SPAWN = multiprocessing.get_context("spawn")  # JAX hangs in a process that was forked


@dataclass(eq=False)
class _Process:
    """A process, and the number of the chunk that it computes."""

    process: BaseProcess
    pipe: Connection
    ready: bool = False
    number: int | None = None
    began: float = 0.0
    patience: float = 0.0

    @property
    def name(self) -> str:
        return str(self.process.pid)


class Processes:
    """Has the chunks of a sweep computed by processes here."""

    def __init__(
        self,
        count: int,
        job: Job,
        layout: Layout,
        *,
        numbers: np.ndarray,
        patience_chunk: Patience,
        settle: Callable[[Chunk, Outcome], None],
    ) -> None:
        """Starts nothing yet.

        Args:
            count: How many processes, at most.
            job: What all chunks have in common.
            layout: The chunks.
            numbers: Those to compute.
            patience_chunk: How long a chunk may take.
            settle: Takes the outcome of each chunk.
        """
        self._count, self._job, self._layout = count, job, layout
        self._patience_chunk, self._settle = patience_chunk, settle
        self._programs = Programs(numbers, layout.programs(numbers))
        self._processes: list[_Process] = []
        self._failed_starts = 0
        self._suspects: deque[int] = deque()
        self._suspected: set[int] = set()

    def run(self) -> None:
        """Computes all chunks. One whose process ends is tried once more in the end, alone.

        Raises:
            InvalidInputError: If processes cannot be started.
            AttractorError: What a chunk raised that no other would do better.
        """
        try:
            while self._programs.left or self._busy or self._suspects:
                self._fill()
                self._take()
        finally:
            self._end(*self._processes)

    @property
    def _busy(self) -> int:
        return sum(one.number is not None for one in self._processes)

    def _fill(self) -> None:
        """Starts as many processes as there is work for, and gives work to those without."""
        wanted = min(self._count, self._programs.left + self._busy) or 1
        for _ in range(wanted - len(self._processes)):
            self._start()
        for one in self._processes:
            if not one.ready or one.number is not None:
                continue
            if self._programs.left:
                number = self._programs.take(one.name)
            elif self._suspects and not self._busy:
                number = self._suspects.popleft()
            else:
                continue
            one.number, one.began = number, time.monotonic()
            one.patience = self._patience_chunk.of(self._program(number))
            with contextlib.suppress(OSError):  # it has ended, which is seen next
                one.pipe.send(self._layout.chunk(number))

    def _start(self) -> None:
        here, there = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_serve, args=(there, self._job), daemon=True)
        with _environment():
            process.start()
        there.close()
        self._processes.append(_Process(process, here))

    def _take(self) -> None:
        """Waits for answers, for processes that end, and for chunks that hang."""
        now, busy = time.monotonic(), [one for one in self._processes if one.number is not None]
        left = min((one.began + one.patience - now for one in busy), default=_LOOK)
        by_pipe: dict[Any, _Process] = {one.pipe: one for one in self._processes}
        for pipe in wait([*by_pipe], min(max(left, 0.0), _LOOK)):
            one = by_pipe[pipe]
            try:
                answer = one.pipe.recv()
            except (EOFError, OSError):
                self._lose(one)
                continue
            if isinstance(answer, Exception):
                raise answer
            if answer is None:
                one.ready, self._failed_starts = True, 0
            else:
                self._settle_of(one, answer)
        for one in busy:
            took = time.monotonic() - one.began
            if one.number is not None and took > one.patience:
                self._end(one)
                self._settle_of(one, Outcome(took, error=HANGS.format(one.patience)))

    def _settle_of(self, one: _Process, outcome: Outcome) -> None:
        """Settles the chunk of a process."""
        assert one.number is not None
        number, one.number = one.number, None
        if outcome.record is not None:
            self._patience_chunk.learn(self._program(number), outcome.seconds)
        self._settle(self._layout.chunk(number), outcome)

    def _lose(self, one: _Process) -> None:
        """Takes note of a process that ends."""
        one.process.join(_FAREWELL)
        self._end(one)
        code = one.process.exitcode
        if not one.ready:
            self._failed_starts += 1
            if self._failed_starts == _STARTS:
                raise InvalidInputError(
                    "cluster",
                    f"its processes cannot be started: they end with code {code}",
                    "In a script, call sweep below `if __name__ == '__main__':`: they run it, too",
                )
        elif one.number in self._suspected:
            said = f"its process ended twice, with code {code} when it was alone"
            self._settle_of(one, Outcome(0.0, error=said))
        elif one.number is not None:
            self._suspects.append(one.number)
            self._suspected.add(one.number)
            one.number = None

    def _end(self, *processes: _Process) -> None:
        """Ends processes that have not ended."""
        for one in processes:
            one.pipe.close()
            one.process.terminate()
        until = time.monotonic() + _FAREWELL
        for one in processes:
            one.process.join(max(0.0, until - time.monotonic()))
            one.process.kill()
            one.process.join()
            self._processes.remove(one)
            self._programs.forget(one.name)

    def _program(self, number: int) -> int:
        return int(self._layout.programs(np.array([number]))[0])


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Lets processes that are started inside the block have what they need, and no others."""
    added = {name: value for name, value in _ENVIRONMENT.items() if not os.environ.get(name)}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _serve(pipe: Connection, job: Job) -> None:
    """What a process does: it says that it is ready, and then computes what it is sent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that ends this one
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends, and cleans up after itself
    threading.Thread(target=_end_with_parent, daemon=True).start()
    task: Callable[[], Any] = functools.partial(require_same_source, job.experiment, job.source)
    with contextlib.suppress(KeyboardInterrupt, EOFError, OSError):  # of a pipe without another end
        while True:
            try:
                answer = task()
            except Exception as error:
                answer = error
            pipe.send(answer)
            task = functools.partial(run_chunk, job, pipe.recv())


def _end_with_parent() -> None:
    """Ends this process, whatever it does, when the one that started it is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
