"""The measurements of the loop."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Array, Int


@dataclass
class Records:
    """The measurements of a run, as arrays over (trial, record, ...).

    Attributes:
        series: Every recorded quantity; those kept only at the end have no record axis.
        status: How each trial ended, a ``TrialStatus``.
        steps_taken: Number of steps that changed the trial before it ended.
    """

    series: dict[str, np.ndarray]
    status: Int[np.ndarray, "trial"]
    steps_taken: Int[np.ndarray, "trial"]


@dataclass
class Measurements:
    """The arrays that blocks of trials fill, each block its own rows, from several threads.

    Attributes:
        trials: Number of trials.
        records: Number of recorded steps.
        last_only: Names of the measurements kept at the last step alone.
        series: The arrays, which appear with the first measurement.
        status: A ``TrialStatus`` for each trial.
        steps_taken: Number of steps that changed each trial.
    """

    trials: int
    records: int
    last_only: frozenset[str]
    series: dict[str, np.ndarray] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.status = np.zeros(self.trials, dtype=np.int32)
        self.steps_taken = np.zeros(self.trials, dtype=np.int64)

    def write(
        self,
        block: Int[np.ndarray, "block"],
        first: int,
        stop: int,
        measured: dict[str, Array],
    ) -> None:
        """Stores one measurement of a block under the records from ``first`` to ``stop``."""
        for name, values in measured.items():
            if name in self.last_only and stop < self.records:
                continue
            array = np.asarray(values)[: len(block)]
            self.put(name, block, first, stop, array if name in self.last_only else array[:, None])

    def put(
        self, name: str, block: Int[np.ndarray, "block"], first: int, stop: int, array: np.ndarray
    ) -> None:
        """Stores records of one quantity, with an axis of records unless kept at the end."""
        once = name in self.last_only
        with self._lock:
            if name not in self.series:
                shape = array.shape[1:] if once else (self.records, *array.shape[2:])
                self.series[name] = np.empty((self.trials, *shape), array.dtype)
        rows = self._rows(block)
        self.series[name][rows if once else (rows, slice(first, stop))] = array

    def finish(
        self,
        block: Int[np.ndarray, "block"],
        steps_taken: Int[Array, "size"],
        status: Int[Array, "size"],
    ) -> None:
        """Stores the final statuses of the trials of a block."""
        self.steps_taken[block] = np.asarray(steps_taken)[: len(block)]
        self.status[block] = np.asarray(status)[: len(block)]

    def stored(
        self, block: Int[np.ndarray, "block"], first: int, stop: int
    ) -> dict[str, np.ndarray]:
        """The measurements of a block under the records from ``first`` to ``stop``."""
        rows = self._rows(block)
        found = {}
        for name, array in list(self.series.items()):
            if name not in self.last_only:
                found[name] = array[rows, first:stop]
            elif stop == self.records:
                found[name] = array[rows]
        return found

    def _rows(self, block: Int[np.ndarray, "block"]) -> slice:
        """A slice, because indexing by arrays is slow."""
        return slice(int(block[0]), int(block[-1]) + 1)
