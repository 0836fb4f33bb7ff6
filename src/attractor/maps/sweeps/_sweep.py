"""``sweep``: every point of a grid, here or on a cluster, from where an earlier call ended."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.maps.sweeps.dispatch import Dispatcher, Patience, checked_cluster, connected
from attractor.maps.sweeps.experiment import Experiment, source_of
from attractor.maps.sweeps.grid import Chunk, Grid
from attractor.maps.sweeps.processes import Processes
from attractor.maps.sweeps.storage.contents import SweepStatus, status_of
from attractor.maps.sweeps.storage.layout import Layout
from attractor.maps.sweeps.storage.store import DONE, FAILED, Record, SweepStore
from attractor.maps.sweeps.work import Job, Outcome, run_chunk, this_process
from attractor.results import Rows, Summary
from attractor.support.checks import check_count, check_flag, check_kinds, check_number, shown
from attractor.support.errors import InvalidInputError
from attractor.support.progress import ProgressBar, progress_bar, time_in_words
from attractor.support.threads import processors

if TYPE_CHECKING:
    from distributed import Client

_LINES = 30.0
"""Seconds between lines of progress in a log."""
_SEED = 0
"""Of the order in which programs are shared out."""


@dataclass(frozen=True, repr=False)
class SweepSummary(Summary):
    """What a call of ``sweep`` did.

    Attributes:
        status: How far the sweep is now.
        computed: Chunks that this call computed.
        repaired: Those of them that an earlier call had computed, and that were damaged since.
        trials: Trials in them.
        newly_failed: Places of the chunks that failed in this call.
        seconds: How long the call took.
        busy: Seconds of chunks, all processes together.
    """

    status: SweepStatus
    computed: int
    repaired: int
    trials: int
    newly_failed: tuple[tuple[int, ...], ...]
    seconds: float
    busy: float

    def _summary(self) -> tuple[str, Rows]:
        title, rows = self.status._summary()
        did = f"{self.computed:,} chunks in {time_in_words(self.seconds)}"
        if self.repaired:
            did += f", {self.repaired:,} of them damaged before"
        if self.computed:
            did += f", {self.trials / self.seconds:,.3g} trials/s"
        return title, [("this call", did), *rows]


def sweep(
    grid: Grid,
    experiment: Experiment,
    store: str | os.PathLike[str],
    cluster: int | str | os.PathLike[str] | Client | None = None,
    *,
    share: tuple[int, int] | None = None,
    retry_failed: bool = False,
    threads: int | None = None,
    patience: float = 60.0,
    patience_chunk: float | None = None,
    progress: bool = False,
) -> SweepSummary:
    """Runs an experiment at every point of a grid and writes the results into a store.

    What is done in the store already stays; the rest is computed, and so is what was damaged since.
    So a sweep that was ended, however it was, is called again and goes on, on as many processes as
    there are then. The numbers in the store depend on the grid, the experiment, the versions of
    libraries and the kind of processor, and not on where, in which order and by how many processes
    they were computed.

    Args:
        grid: What is swept over.
        experiment: What is done at every point, such as ``built_in("train_and_verify")``.
        store: A folder, which is made if there is none.
        cluster: None computes in this process; a number starts as many processes here, over pipes
            that no other process reaches. Otherwise a ``Client`` of Dask, the address of its
            scheduler, or its scheduler file: whoever reaches that scheduler can run code here, so
            let it be one that you trust.
        share: ``(i, n)`` computes the i-th of n parts of the sweep, counted from 0: for array
            jobs without a scheduler.
        retry_failed: Whether chunks that failed before are computed again.
        threads: Threads of the library in every process. None shares the processors out among the
            processes that a number starts, and leaves others as they are set up.
        patience: Seconds without any worker of Dask after which the call ends with an error.
        patience_chunk: Seconds after which a chunk counts as hanging, and fails. With a cluster
            None takes ten times the longest chunk of the same program so far, and at least ten
            minutes, or an hour where there is none yet; without one it waits for ever.
        progress: Whether to show a bar on standard error, or lines where that is a file.

    Returns:
        What was done, and how far the sweep is. A chunk in which the experiment raises, hangs or
        ends its process is marked as failed there, and the others go on.

    Raises:
        InvalidInputError: If the experiment does not know the grid, the store is of another sweep
            or there is no room for it, or a library or the cluster is missing; or while it runs, if
            the experiment returns what it does not declare. What is done stays.
        WriteError: If the store cannot be written, on a full disk say. What is done stays.
        ClusterLostError: If the scheduler ends, or there are no workers for too long. What is done
            stays.
    """
    began = time.monotonic()
    check_kinds(grid=(grid, Grid), experiment=(experiment, Experiment))
    check_flag("retry_failed", retry_failed)
    check_flag("progress", progress)
    check_number("patience", patience, above=0)
    if patience_chunk is not None:
        check_number("patience_chunk", patience_chunk, above=0)
    if threads is not None:
        check_count("threads", threads)
    cluster = checked_cluster(cluster)
    if isinstance(cluster, int) and threads is None:
        threads = max(1, processors() // cluster)
    share = _checked_share(share, cluster)
    experiment.check_grid(grid)
    there = SweepStore.create_or_open(store, grid, experiment)
    job = Job(
        str(there.path.absolute()),
        there.token,
        experiment,
        source_of(experiment.name),
        threads,
        this_process(),
    )
    numbers, damaged = _numbers(there, share, retry_failed)
    trials = there.layout.grid.trials
    with progress_bar("sweeping", trials, enabled=progress, lines_every=_LINES) as bar:
        run = _Run(there, job, share, bar)
        run.before(numbers)
        if cluster is None:
            for number in numbers:
                chunk = there.layout.chunk(number)
                run.settle(chunk, run_chunk(job, chunk, patience_chunk))
        else:
            how: dict[str, Any] = {
                "numbers": numbers,
                "patience_chunk": Patience(patience_chunk, there.layout, there.records()),
                "settle": run.settle,
            }
            if isinstance(cluster, int):
                Processes(cluster, job, there.layout, **how).run()
            else:
                with connected(cluster, patience) as client:
                    Dispatcher(client, job, there.layout, patience=patience, **how).run()
    return SweepSummary(
        status=status_of(there),
        computed=run.computed,
        repaired=damaged,
        trials=run.trials,
        newly_failed=tuple(run.failed),
        seconds=time.monotonic() - began,
        busy=run.busy,
    )


class _Run:
    """What comes in while a sweep runs: it is written, counted and shown."""

    def __init__(
        self, store: SweepStore, job: Job, share: tuple[int, int] | None, bar: ProgressBar
    ) -> None:
        self._store, self._job, self._share, self._bar = store, job, share, bar
        self._times = store.records()[:, -1]
        self.computed = self.trials = 0
        self.busy = 0.0
        self.failed: list[tuple[int, ...]] = []

    def before(self, numbers: np.ndarray) -> None:
        """Counts what this call will not compute."""
        layout = self._store.layout
        self._bar.skip(layout.grid.trials - layout.trials(numbers))

    def settle(self, chunk: Chunk, outcome: Outcome) -> None:
        """Takes the outcome of a chunk."""
        if outcome.record is None:
            self._fail(chunk, outcome)
        elif outcome.arrays is not None:
            self._store.write(chunk, outcome.arrays, outcome.record)
        self.computed += 1
        self.trials += chunk.trials
        self.busy += outcome.seconds
        self._bar(chunk.trials)

    def _fail(self, chunk: Chunk, outcome: Outcome) -> None:
        number = np.ravel_multi_index(chunk.place, self._store.layout.counts)
        times = int(self._times[number]) + 1
        failure = {
            "place": chunk.place,
            "points": chunk.points[0],
            "instances": [chunk.instances.start, chunk.instances.stop],
            "seeds": [chunk.seeds.start, chunk.seeds.stop],
            "error": outcome.error,
            "traceback": outcome.traceback,
        }
        self._store.add_failure(self._share, failure)
        self._store.write_record(chunk, Record(FAILED, 0, outcome.seconds, 0, times))
        self.failed.append(chunk.place)
        self._bar.note(f"{len(self.failed):,} failed")


def _numbers(
    store: SweepStore, share: tuple[int, int] | None, retry_failed: bool
) -> tuple[np.ndarray, int]:
    """The numbers of the chunks that a call computes, by program, and how many were damaged."""
    layout = store.layout
    every = _by_program(layout)
    if share is not None:
        part, parts = share
        every = every[len(every) * part // parts : len(every) * (part + 1) // parts]
    state = store.records()[:, 0]
    damaged = store.damaged(every[state[every] == DONE])
    state[damaged] = 0
    state = state[every]
    return every[(state != DONE) & (retry_failed | (state != FAILED))], len(damaged)


def _by_program(layout: Layout) -> np.ndarray:
    """The numbers of all chunks, by program; programs in a random order that is always the same.

    So that each of several equal parts of it has few programs, and long ones as well as short ones.
    """
    programs = layout.programs(np.arange(layout.chunks))
    _, program = np.unique(programs, return_inverse=True)
    rank = np.random.default_rng(_SEED).permutation(int(program.max()) + 1)
    return np.argsort(rank[program], kind="stable")


def _checked_share(share: Any, cluster: Any) -> tuple[int, int] | None:
    if share is None:
        return None
    if not isinstance(share, tuple | list) or len(share) != 2:
        raise InvalidInputError("share", f"it is {shown(share)}", "Give (i, n), such as (0, 64)")
    if cluster is not None:
        raise InvalidInputError("share", "there is a cluster, too", "Give one of them")
    parts = check_count("share[1]", share[1])
    return check_count("share[0]", share[0], 0, parts - 1), parts
