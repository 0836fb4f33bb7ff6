"""Whether what lies in a store is what was computed, and is computed again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attractor.maps.sweeps.experiment import Experiment, built_in, built_in_modules
from attractor.maps.sweeps.storage.identity import differences, identity_of
from attractor.maps.sweeps.storage.status import listed
from attractor.maps.sweeps.storage.store import DONE, Record, SweepStore, checksum
from attractor.maps.sweeps.work import compute, processor_kind
from attractor.results import Rows, Summary
from attractor.support.checks import check_count, check_flag, check_kinds
from attractor.support.errors import InvalidInputError


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
