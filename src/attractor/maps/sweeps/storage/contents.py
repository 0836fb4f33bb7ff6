"""How far the store of a sweep is, and whether it holds what was computed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attractor.maps.sweeps.experiment import Experiment, built_in, built_in_modules
from attractor.maps.sweeps.storage.layout import differences, identity_of
from attractor.maps.sweeps.storage.store import (
    DONE,
    FAILED,
    FIELDS,
    Record,
    SweepStore,
    checksum,
)
from attractor.maps.sweeps.work import compute, processor_kind
from attractor.results import Rows, Summary
from attractor.support.checks import check_count, check_flag, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.progress import time_in_words

_SHOWN = 3
_LISTED = 5


@dataclass(frozen=True)
class Failure:
    """A chunk that failed.

    Attributes:
        place: Its place in the grid of chunks.
        times: How often it failed.
        error: What it failed with the last time.
        traceback: Where it failed; empty where its process ended, or it hung.
    """

    place: tuple[int, ...]
    times: int
    error: str
    traceback: str


@dataclass(frozen=True, repr=False)
class SweepStatus(Summary):
    """How far a sweep is.

    Attributes:
        store: Its folder.
        trials: Trials of the grid.
        chunks: Chunks of the grid.
        done: Those that are done.
        failed: Those that failed.
        damaged: Places of those that were done, and are not what was computed any more.
        seconds: Seconds that the longest and the median chunk took, and all together.
        remaining: Seconds that a single process will take for the rest, from the chunks of the same
            program, or of all where there is none yet; NaN where none is done.
        processors: Chunks computed on each kind of processor, by its number. Where there are
            several, the last bits differ between them.
    """

    store: Path
    trials: int
    chunks: int
    done: int
    failed: tuple[Failure, ...]
    damaged: tuple[tuple[int, ...], ...]
    seconds: tuple[float, float, float]
    remaining: float
    processors: dict[str, int]

    @property
    def left(self) -> int:
        """Chunks that are not done and did not fail, the damaged ones among them."""
        return self.chunks - self.done - len(self.failed)

    def _summary(self) -> tuple[str, Rows]:
        longest, median, total = self.seconds
        rows = [
            ("trials", f"{self.trials:,}"),
            ("chunks", f"{self.chunks:,}: {self.done:,} done, {len(self.failed):,} failed,"
             f" {self.left:,} left"),
        ]  # fmt: skip
        if self.damaged:
            rows.append(("damaged", f"{len(self.damaged):,} of those left: {listed(self.damaged)}"))
            rows.append(("", "the command of the sweep computes them again"))
        if self.done:
            rows.append(("a chunk", f"{median:.3g} s (median), {longest:.3g} s (longest)"))
            rows.append(("computed", time_in_words(total)))
        if self.left and np.isfinite(self.remaining):
            rows.append(("left", f"{time_in_words(self.remaining)} of one process"))
        if len(self.processors) > 1:
            kinds = ", ".join(f"{kind} ({count:,})" for kind, count in self.processors.items())
            rows.append(("processors", f"{kinds}: last bits differ between them"))
        for failure in self.failed[:_SHOWN]:
            rows.append((f"failed {failure.place}", f"{failure.times} times: {failure.error}"))
        if len(self.failed) > _SHOWN:
            rows.append(("", f"and {len(self.failed) - _SHOWN:,} more"))
        return f"Sweep in {self.store}", rows


def listed(places: Sequence[tuple[int, ...]]) -> str:
    """The places of some chunks in words."""
    more = f" and {len(places) - _LISTED:,} more" * (len(places) > _LISTED)
    return f"{', '.join(map(str, places[:_LISTED]))}{more}"


def sweep_status(store: str | os.PathLike[str]) -> SweepStatus:
    """How far the sweep in a store is; nothing is imported that the store names.

    All that is stored is read, and compared with its checksums.

    Args:
        store: The folder that the sweep was written to.

    Raises:
        InvalidInputError: If there is no store of a sweep.
        FileFormatError: If it is damaged.
    """
    return status_of(SweepStore.open(store))


def status_of(store: SweepStore) -> SweepStatus:
    """How far the sweep in an open store is."""
    layout, records = store.layout, store.records()
    damaged = store.damaged(np.flatnonzero(records[:, 0] == DONE))
    records[damaged] = 0
    state, _, seconds, processor, times = (records[:, at] for at in range(len(FIELDS)))
    done = state == DONE
    told = store.failures() if (state == FAILED).any() else {}
    failed = []
    for number in map(int, np.flatnonzero(state == FAILED)):
        place = layout.place(number)
        said = told.get(place, {})
        error = str(said.get("error", "it is not listed beside the store"))
        where = str(said.get("traceback", ""))
        failed.append(Failure(place, int(times[number]), error, where))
    kinds, counts = np.unique(processor[done].astype(np.int64), return_counts=True)
    took = seconds[done]
    return SweepStatus(
        store=store.path,
        trials=layout.grid.trials,
        chunks=layout.chunks,
        done=int(done.sum()),
        failed=tuple(failed),
        damaged=tuple(map(layout.place, damaged)),
        seconds=(float(took.max()), float(np.median(took)), float(took.sum()))
        if len(took)
        else (np.nan, np.nan, 0.0),
        remaining=_remaining(layout.programs(np.arange(layout.chunks)), state, seconds),
        processors={f"{kind:08x}": int(count) for kind, count in zip(kinds, counts, strict=True)},
    )


def _remaining(programs: np.ndarray, state: np.ndarray, seconds: np.ndarray) -> float:
    """Seconds of the chunks that are left, each as long as those of its program."""
    done = state == DONE
    if not done.any():
        return np.nan
    _, program = np.unique(programs, return_inverse=True)
    count = np.bincount(program[done], minlength=program.max() + 1)
    total = np.bincount(program[done], seconds[done], minlength=program.max() + 1)
    of_all = seconds[done].mean()
    each = np.divide(total, count, out=np.full(len(count), of_all), where=count > 0)
    return float(each[program[state == 0]].sum())


@dataclass(frozen=True, repr=False)
class SweepCheck(Summary):
    """What a check of a store found.

    Attributes:
        store: Its folder.
        read: Chunks that were read.
        damaged: Places of those that cannot be read, or are not what was written.
        again: Chunks that were computed again.
        differing: Places of those that came out differently, in a bit at least.
        elsewhere: Those of them that were computed on another kind of processor, whose linear
            algebra rounds differently.
        discarded: Whether the damaged ones were discarded.
    """

    store: Path
    read: int
    damaged: tuple[tuple[int, ...], ...]
    again: int
    differing: tuple[tuple[int, ...], ...]
    elsewhere: tuple[tuple[int, ...], ...]
    discarded: bool

    @property
    def passed(self) -> bool:
        """Whether nothing is damaged, and nothing differs from the same kind of processor."""
        return not self.damaged and len(self.differing) == len(self.elsewhere)

    def _summary(self) -> tuple[str, Rows]:
        rows = [
            ("checksums", f"{self.read - len(self.damaged):,} of {self.read:,} chunks are right"),
            (
                "computed again",
                f"{self.again - len(self.differing):,} of {self.again:,} have the same bits",
            ),
        ]
        if self.elsewhere:
            number = f"{len(self.elsewhere):,} of those that differ"
            rows.append(("", f"{number} were computed on another kind of processor"))
        for name, places in (("damaged", self.damaged), ("differing", self.differing)):
            if places:
                rows.append((name, listed(places)))
        if self.damaged:
            rows.append(("", "the command of the sweep computes the damaged ones again"))
        return f"Check of the sweep in {self.store}", rows


def check_sweep(
    store: str | os.PathLike[str],
    again: int = 0,
    seed: int = 0,
    experiment: Experiment | None = None,
    *,
    discard: bool = False,
) -> SweepCheck:
    """Compares the checksum of every chunk, and computes some again to compare their bits.

    Args:
        store: The folder that the sweep was written to.
        again: Number of random chunks that are computed again; all that are done, if it has fewer.
        seed: Which they are.
        experiment: What to compute them with. An experiment of the library is known from the store;
            one of one's own has to be named again.
        discard: Whether damaged chunks are marked as not done. ``sweep`` computes them again
            whether they are or not.

    Raises:
        InvalidInputError: If there is no store, or the experiment is another one.
        FileFormatError: If the description of the store, or of an array, is damaged.
        WriteError: If ``discard`` cannot be written.
    """
    check_count("again", again, 0)
    check_count("seed", seed, 0)
    check_flag("discard", discard)
    check_kinds(experiment=(experiment, Experiment | None))
    there = SweepStore.open(store)
    if again:
        experiment = _experiment(there, experiment)
    layout, records = there.layout, there.records()
    done = np.flatnonzero(records[:, 0] == DONE)
    damaged = [layout.chunk(number) for number in there.damaged(done)]
    for chunk in damaged if discard else ():
        there.write_record(chunk, Record(0))
    differing, elsewhere = [], []
    chosen = np.random.default_rng(seed).permutation(done)[:again]
    for number in map(int, chosen):
        assert experiment is not None
        chunk = layout.chunk(number)
        if checksum(compute(experiment, chunk), layout.measures) != records[number, 1]:
            differing.append(chunk.place)
            if records[number, 3] != processor_kind():
                elsewhere.append(chunk.place)
    return SweepCheck(
        store=there.path,
        read=len(done),
        damaged=tuple(chunk.place for chunk in damaged),
        again=len(chosen),
        differing=tuple(differing),
        elsewhere=tuple(elsewhere),
        discarded=discard,
    )


def _experiment(store: SweepStore, given: Experiment | None) -> Experiment:
    """The experiment of a store: the library's own by its name, or the one that was given."""
    described = store.identity["experiment"]
    name = described["name"]
    if given is None:
        if name not in built_in_modules():
            raise InvalidInputError(
                "experiment",
                f"{name} is none of the library, and a file does not say what to run",
                "Give the experiment again",
            )
        given = built_in(name, **described["settings"])
    differing = differences(store.identity, identity_of(store.layout.grid, given))
    if differing:
        raise InvalidInputError(
            "experiment", f"it is not that of the store: {'; '.join(differing[:4])}", "Give that"
        )
    return given
