"""Chunks on the workers of a Dask cluster: few at a time, and every worker stays with its program.

Traps of Dask that shape this file: a call to a worker that dies meanwhile waits for ever, so that
none is made; a task bound to one worker waits for it for ever once all workers are lost together,
even if others may take it, so that it is handed out anew; an answer is lost with its worker, so
that it is fetched beside all else and at once; and chunks beside one that ends its process are
blamed with it, so that each of them is tried once more, alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import os
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attractor.maps.sweeps.grid import Chunk
from attractor.maps.sweeps.storage.layout import Layout
from attractor.maps.sweeps.storage.store import DONE, require_sweep_libraries
from attractor.maps.sweeps.work import Job, Outcome, run_chunk
from attractor.support.checks import check_count, is_whole, shown
from attractor.support.errors import ClusterLostError, InvalidInputError
from attractor.support.loaded import is_of_loaded

if TYPE_CHECKING:
    from distributed import Client, Future

_AHEAD = 2
"""Chunks of a thread that are at its worker at once: one that runs and one that waits."""
_LOOK = 1.0
"""Seconds after which the workers are looked up again, if that takes little time."""
_SHARE = 20
"""One part in so many of the time is spent on it at most: of 1,000 workers it takes 0.3 s."""
_LOSSES = 2
"""Lost workers that a chunk may have been with before it is suspected, on any cluster."""
_WAIT = 0.5
_TIMES, _FLOOR, _FLOOR_FIRST = 10, 600.0, 3600.0
_MOST_PROCESSES = 1024
_STORED = "what is done is in the store; call sweep again to go on"


class Programs:
    """Which chunk a worker gets: of its program, then of the one with most left for a worker."""

    def __init__(self, numbers: np.ndarray, programs: np.ndarray) -> None:
        """Takes the numbers of chunks, and the program that each needs."""
        order = np.argsort(programs, kind="stable")
        self._numbers = numbers[order]
        _, first, count = np.unique(programs[order], return_index=True, return_counts=True)
        self._next, self._end = first.tolist(), (first + count).tolist()
        self._workers = [0] * len(first)
        self._of: dict[str, int] = {}
        self._most = [(self._rank(program), program) for program in range(len(first))]
        heapq.heapify(self._most)
        self.left = len(numbers)

    def take(self, worker: str) -> int:
        """The number of the next chunk of a worker; there is one left."""
        program = self._of.get(worker)
        if program is None or self._next[program] == self._end[program]:
            self.forget(worker)
            program = self._of[worker] = self._choose()
        number = self._numbers[self._next[program]]
        self._next[program] += 1
        self.left -= 1
        return int(number)

    def forget(self, worker: str) -> None:
        """Lets go of a worker, which is gone or has no chunk of its program left."""
        program = self._of.pop(worker, None)
        if program is not None:
            self._workers[program] -= 1
            heapq.heappush(self._most, (self._rank(program), program))

    def _choose(self) -> int:
        """The program with most chunks left for a worker, those that joined it counted."""
        while True:  # entries of the heap are of earlier times, and never too low
            rank, program = heapq.heappop(self._most)
            now = self._rank(program)
            if now > rank:
                if now < 0:
                    heapq.heappush(self._most, (now, program))
                continue
            self._workers[program] += 1
            heapq.heappush(self._most, (self._rank(program), program))
            return program

    def _rank(self, program: int) -> float:
        left = self._end[program] - self._next[program]
        return -left / (1 + self._workers[program])


class Patience:
    """How long a chunk may take before it counts as hanging."""

    def __init__(self, given: float | None, layout: Layout, records: np.ndarray) -> None:
        """Takes what the user gave, and what is known of the chunks that are done."""
        self._given, self._longest = given, {}
        done = np.flatnonzero(records[:, 0] == DONE)
        programs = layout.programs(done).tolist()
        for program, seconds in zip(programs, records[done, 2].tolist(), strict=True):
            self.learn(program, seconds)

    def learn(self, program: int, seconds: float) -> None:
        """Takes note of how long a chunk took."""
        self._longest[program] = max(seconds, self._longest.get(program, 0.0))

    def of(self, program: int) -> float:
        """Seconds for a chunk of a program."""
        if self._given is not None:
            return self._given
        if program in self._longest:
            return max(_FLOOR, _TIMES * self._longest[program])
        return max(_FLOOR_FIRST, _TIMES * max(self._longest.values(), default=0.0))


class _Flight(NamedTuple):
    """A chunk that is with the scheduler."""

    future: Future
    number: int
    program: int
    chunk: Chunk
    worker: str | None


class Dispatcher:
    """Has the chunks of a sweep computed by the workers of a cluster."""

    def __init__(
        self,
        client: Client,
        job: Job,
        layout: Layout,
        *,
        numbers: np.ndarray,
        patience: float,
        patience_chunk: Patience,
        settle: Callable[[Chunk, Outcome], None],
    ) -> None:
        """Starts nothing yet.

        Args:
            client: The client of the cluster.
            job: What all chunks have in common.
            layout: The chunks.
            numbers: Those to compute.
            patience: Seconds without workers after which it ends.
            patience_chunk: How long a chunk may take.
            settle: Takes the outcome of each chunk.
        """
        self._client, self._job, self._layout = client, job, layout
        self._patience, self._patience_chunk, self._settle = patience, patience_chunk, settle
        self._programs = Programs(numbers, layout.programs(numbers))
        self._flying: dict[Any, _Flight] = {}
        self._answers: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._slots: dict[str, int] = {}
        self._load: Counter[str] = Counter()
        self._closing: set[str] = set()
        self._again: deque[int] = deque()
        self._losses: Counter[int] = Counter()
        self._suspects: deque[int] = deque()
        self._counter = itertools.count()
        self._run = f"attractor-sweep-{job.token[:8]}{time.time_ns():x}"
        self._look_at, self._seen = 0.0, time.monotonic()

    def run(self) -> None:
        """Computes all chunks.

        Raises:
            ClusterLostError: If the scheduler ends, or there are no workers for too long.
            AttractorError: What a chunk raised that no other would do better.
        """
        try:
            while self._left or self._flying or self._suspects:
                self._look()
                if self._left:
                    self._fill()
                elif not self._flying and not self._closing:
                    self._submit(self._suspects.popleft(), None)
                with contextlib.suppress(queue.Empty):
                    self._take(*self._answers.get(timeout=_WAIT))
                    while True:
                        self._take(*self._answers.get_nowait())
        finally:
            if self._flying and self._client.status == "running":
                with contextlib.suppress(Exception):
                    self._client.cancel([flight.future for flight in self._flying.values()])

    @property
    def _left(self) -> int:
        """Chunks that any worker may get."""
        return self._programs.left + len(self._again)

    def _look(self) -> None:
        """Looks up which workers there are, now and then."""
        now = time.monotonic()
        if self._client.status != "running":
            if self._client.status != "connecting" or now - self._seen > self._patience:
                raise ClusterLostError(f"the scheduler is gone: {_STORED}")
            return
        if now < self._look_at:
            return
        try:
            info = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError) as error:
            raise ClusterLostError(f"the scheduler does not answer ({error}): {_STORED}") from error
        self._closing &= info.keys()
        self._slots = {
            worker: told["nthreads"]
            for worker, told in info.items()
            if told.get("status", "running") == "running" and worker not in self._closing
        }
        for worker in [worker for worker in self._load if worker not in info]:
            self._lose(worker)
        looked = time.monotonic()
        self._look_at = looked + max(_LOOK, _SHARE * (looked - now))
        if self._slots:
            self._seen = looked
        elif looked - self._seen > self._patience:
            raise ClusterLostError(f"there was no worker for {self._patience:g} s: {_STORED}")

    def _lose(self, worker: str) -> None:
        """Has the chunks of a worker that is gone computed by others."""
        for flight in [one for one in self._flying.values() if one.worker == worker]:
            self._drop(flight)
            self._losses[flight.number] += 1
            suspected = self._losses[flight.number] > _LOSSES
            (self._suspects if suspected else self._again).append(flight.number)
        del self._load[worker]
        self._programs.forget(worker)

    def _fill(self, *workers: str) -> None:
        """Gives some workers, or all, as many chunks as they take ahead."""
        for turn in range(1, _AHEAD + 1):
            for worker in workers or self._slots:
                slots = self._slots.get(worker, 0)
                while self._left and self._load[worker] < turn * slots:
                    number = self._again.popleft() if self._again else self._programs.take(worker)
                    self._submit(number, worker)

    def _submit(self, number: int, worker: str | None) -> None:
        chunk = self._layout.chunk(number)
        program = int(self._layout.programs(np.array([number]))[0])
        future = self._client.submit(
            run_chunk,
            self._job,
            chunk,
            self._patience_chunk.of(program),
            key=(self._run, next(self._counter)),
            pure=False,
            workers=None if worker is None else [worker],
            allow_other_workers=worker is not None,
        )
        self._flying[future.key] = _Flight(future, number, program, chunk, worker)
        if worker is not None:
            self._load[worker] += 1
        loop: Any = self._client.loop
        loop.add_callback(self._fetch, future)

    async def _fetch(self, future: Future) -> None:
        """Waits for the answer to a chunk; a worker that ends first has it computed again."""
        try:
            fetching: Any = self._client.gather(future, asynchronous=True)
            answer = await fetching
        except (Exception, asyncio.CancelledError) as error:
            answer = error
        self._answers.put((future.key, answer))

    def _take(self, key: Any, answer: Any) -> None:
        """Takes the answer to a chunk, and gives its worker another."""
        flight = self._flying.get(key)
        if flight is None:  # it was handed out anew
            return
        outcome = self._outcome(flight, answer)
        self._drop(flight)
        if outcome is None:
            self._suspects.append(flight.number)
            return
        if outcome.worker is not None:
            self._closing.add(outcome.worker)
            self._slots.pop(outcome.worker, None)
        if outcome.record is not None:
            self._patience_chunk.learn(flight.program, outcome.seconds)
        self._settle(flight.chunk, outcome)
        if flight.worker is not None and flight.worker in self._slots:
            self._fill(flight.worker)

    def _outcome(self, flight: _Flight, answer: Any) -> Outcome | None:
        """What became of a chunk; None if its process ended, and others may have been beside it."""
        if isinstance(answer, Outcome):
            return answer
        if is_of_loaded(answer, "distributed", "KilledWorker"):
            times = answer.allowed_failures + 1
            said = f"its process ended, {times} times, with no other beside it"
            return None if flight.worker is not None else Outcome(0.0, error=said)
        if isinstance(answer, asyncio.CancelledError) or self._client.status != "running":
            raise ClusterLostError(f"the scheduler is gone: {_STORED}")
        raise answer

    def _drop(self, flight: _Flight) -> None:
        """Lets go of a chunk that is no longer with the scheduler."""
        del self._flying[flight.future.key]
        if flight.worker is not None and flight.worker in self._load:
            self._load[flight.worker] -= 1
        flight.future.release()


def checked_cluster(cluster: Any) -> Any:
    """A cluster as it was given, a number as one of Python.

    Raises:
        InvalidInputError: If it is neither a number of processes, nor the address of a scheduler,
            nor a scheduler file that is there, nor a client of Dask.
    """
    if cluster is None or is_of_loaded(cluster, "distributed", "Client"):
        return cluster
    if is_whole(cluster):
        return check_count("cluster", cluster, 1, _MOST_PROCESSES)
    if not isinstance(cluster, str | os.PathLike) or not os.fspath(cluster):
        raise InvalidInputError(
            "cluster",
            f"{shown(cluster)} is no cluster",
            "Give a number of processes, tcp://HOST:PORT, a scheduler file, or a Client of Dask",
        )
    address = os.fspath(cluster)
    if "://" not in address and not Path(address).is_file():
        raise InvalidInputError(
            "cluster", f"there is no scheduler file {address}", "Give it, or tcp://HOST:PORT"
        )
    return address


@contextlib.contextmanager
def connected(cluster: Any, patience: float) -> Iterator[Client]:
    """A client of a cluster.

    Args:
        cluster: As ``checked_cluster`` returns it, and no number of processes.
        patience: Seconds within which the scheduler must answer.

    Yields:
        The client. One that was given stays open.

    Raises:
        InvalidInputError: If no scheduler answers.
    """
    require_sweep_libraries("distributed")
    from distributed import Client

    if is_of_loaded(cluster, "distributed", "Client"):
        if cluster.asynchronous or cluster.status != "running":
            raise InvalidInputError(
                "cluster", f"its client is {cluster.status}, or asynchronous", "Give an open one"
            )
        yield cluster
        return
    place = {"address" if "://" in cluster else "scheduler_file": cluster}
    try:
        client = Client(**place, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError, ValueError, KeyError) as error:
        raise InvalidInputError(
            "cluster", f"no scheduler answers at {cluster} ({error})", "Start one"
        ) from error
    with client:
        yield client
