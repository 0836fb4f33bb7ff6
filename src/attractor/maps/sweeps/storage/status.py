"""How far a sweep is: what is done, what failed and with what, how long the rest will take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attractor.maps.sweeps.storage.store import DONE, FAILED, FIELDS, SweepStore
from attractor.results import Rows, Summary
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
