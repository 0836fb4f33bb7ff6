"""The monitor a training loop calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from rich.console import Console

from attractor.checks import check_count, check_function
from attractor.errors import InvalidInputError
from attractor.geometry import Geometry, get_geometry
from attractor.margin._solve import check_tolerance
from attractor.margin.methods import methods_for
from attractor.monitor.budget import Budget
from attractor.monitor.dataset import as_dataset
from attractor.monitor.head import WatchedHead
from attractor.monitor.record import HeadRecord, RecordStatus
from attractor.monitor.stored import KIND
from attractor.monitor.table import latest_record, latest_table
from attractor.monitor.watch import Watch
from attractor.records import Printed, save_data

if TYPE_CHECKING:
    import xarray as xr


class HeadMonitor(Printed):
    """Records attention heads while a loop of the user's trains them.

    Every ``every`` steps each head is held against the margin problem of the tokens it selects on
    its probe batch: ``(min_j a_j^T W b_j) / ||W|| * ||W*||`` is at most 1, and 1 where the head
    points where gradient descent takes a saturating head (*Transformers as Support Vector
    Machines*, arXiv 2308.16898, convergence to the max-margin solution). The solution is certified
    and kept: while the selection and the tokens stay it is used again, and where they move it is
    solved for from the multipliers before. A selection that no matrix can make is recorded as
    infeasible.

    Records keep to ``budget``, a share of the time since the first call: what would exceed it
    waits for the first later step at which it does not, and says so. A record is never cut short,
    so that the time used exceeds the share by one record at most, where one takes longer than
    those before it. With ``budget=None`` nothing waits, and the records depend on no clock.

    Attributes:
        records: The records of each head by its name, in order.
    """

    width = 110

    def __init__(
        self,
        heads: WatchedHead | Iterable[WatchedHead],
        *,
        every: int = 100,
        geometry: str | Geometry = "frobenius",
        budget: float | None = 0.03,
        tolerance: float = 1e-9,
        max_constraints: int = 20_000,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Prepares to watch heads; nothing is computed yet.

        Args:
            heads: The heads, under different names.
            every: Steps from one record to the next.
            geometry: The norm to solve in: that of the optimizer, "frobenius" for gradient descent
                on the matrix, "nuclear" for gradient descent on its factors.
            budget: Share of the loop's time that records may take, or None for no limit. What
                they cost besides, such as caches that the loop finds cold, comes on top.
            tolerance: Relative duality gap to reach.
            max_constraints: Most constraints, one for each query and token it leaves out, that a
                probe batch may make.
            clock: Tells seconds.

        Raises:
            InvalidInputError: If an argument is of the wrong kind, two heads share a name, or the
                geometry has no solver.
        """
        several = isinstance(heads, Iterable) and not isinstance(heads, str | Mapping | np.ndarray)
        given: Any = heads
        chosen: list[WatchedHead] = list(given) if several else [given]
        if not chosen or not all(isinstance(head, WatchedHead) for head in chosen):
            raise InvalidInputError("heads", "they are no heads", "Give one WatchedHead or more")
        check_function("clock", clock, "Give one that tells seconds, such as time.perf_counter")
        names = [head.name for head in chosen]
        if len(set(names)) < len(names):
            raise InvalidInputError(
                "heads", f"two share a name among {names}", "Name each differently"
            )
        self.every = check_count("every", every)
        most = check_count("max_constraints", max_constraints)
        self.geometry = get_geometry(geometry)
        methods_for(self.geometry)
        check_tolerance(tolerance)
        self.records: dict[str, list[HeadRecord]] = {name: [] for name in names}
        self._budget = Budget(budget, clock)
        self._watches = {head.name: Watch(head, self.geometry, tolerance, most) for head in chosen}
        self._due: dict[str, int] = {}

    def __call__(self, step: int, state: Any) -> None:
        """Records what is due at a step; does nothing at most steps.

        Args:
            step: Number of the step.
            state: What the functions of the heads read: a module, a tree of parameters.
        """
        fresh = step % self.every == 0
        if not fresh and not self._due:
            return
        self._budget.begin()
        if fresh:
            self._due = dict.fromkeys(self._watches, step)
        if self._fits(self._waiting()[0], step):
            self._visit(step, state, forced=False)
        if fresh:
            for records in self.records.values():
                if not records or records[-1].step != step:
                    records.append(HeadRecord(step, step, RecordStatus.POSTPONED))

    def record(self, step: int, state: Any) -> None:
        """Records every head at once, whatever the step and the time it takes."""
        step = check_count("step", step, 0)
        self._budget.begin()
        self._due = dict.fromkeys(self._watches, step)
        self._visit(step, state, forced=True)

    def hook(self, state: Any, *, first: int = 1) -> Callable[..., None]:
        """A function that calls the monitor with the next step each time, for hooks.

        ``optimizer.register_step_post_hook(monitor.hook(model))`` records a PyTorch model.

        Args:
            state: What the heads read, the same object at every step.
            first: Number of the first step.
        """
        step = check_count("first", first, 0) - 1

        def call(*_: Any) -> None:
            nonlocal step
            step += 1
            self(step, state)

        return call

    @property
    def overhead(self) -> float:
        """Share of the time since the first call that records took."""
        elapsed = self._budget.elapsed
        return self._budget.spent / elapsed if elapsed > 0 else 0.0

    def to_xarray(self) -> xr.Dataset:
        """All records as labeled arrays over step, head, sequence and query.

        Numbers that are not known are NaN; selected tokens are -1 where several tie.
        """
        return as_dataset(self.records, self.geometry)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all records as NetCDF; the file appears whole or not at all.

        Raises:
            InvalidInputError: If the path does not end in .nc.
        """
        save_data(self.to_xarray(), path, KIND)

    def _print(self, console: Console) -> None:
        latest = {name: latest_record(records) for name, records in self.records.items()}
        console.print(latest_table(latest, self.geometry))
        statuses = {record.status for record in latest.values() if record is not None}
        for status in sorted(statuses - {RecordStatus.OPTIMAL}):
            console.print(f"{status}: {status.message}", highlight=False)
        console.print(f"{100 * self.overhead:.2g} % of the time went into records")

    def _waiting(self) -> list[str]:
        """The heads that are due, those first that were held against a solution longest ago."""
        return sorted(self._due, key=lambda name: self._watches[name].held)

    def _fits(self, name: str, step: int) -> bool:
        """Whether there is time to read a head, and where it is late also to solve for it."""
        watch = self._watches[name]
        seconds = watch.seconds_to_observe
        if self._due[name] < step:
            seconds += self._seconds_to_solve(watch)
        return self._budget.allows(seconds)

    def _visit(self, step: int, state: Any, *, forced: bool) -> None:
        """Records heads that are due, as long as there is time; none overtakes another."""
        jax.block_until_ready(state)  # the training step still running is not ours to count
        given: dict[int, Any] = {}
        solving = True
        for name in self._waiting():
            if not forced and not self._fits(name, step):
                break
            self._visit_one(name, step, state, given, forced=forced, solving=solving)
            solving = solving and name not in self._due

    def _visit_one(
        self,
        name: str,
        step: int,
        state: Any,
        given: dict[int, Any],
        *,
        forced: bool,
        solving: bool,
    ) -> None:
        """Records one head, without a solution where that would take too long."""
        watch, due = self._watches[name], self._due[name]
        with self._budget.charged() as observing:
            seen = watch.observe(state, given)
        watch.seconds_to_observe = seconds = observing.seconds
        if seen is None:
            del self._due[name]
            self._keep(name, HeadRecord(step, due, RecordStatus.NOT_FINITE))
            return
        status, start, numbers = RecordStatus.POSTPONED, "", {}
        known = watch.reference.is_of(seen.tokens, seen.selection)
        enough = solving and self._budget.allows(self._seconds_to_solve(watch))
        if forced or known or enough:
            with self._budget.charged() as holding:
                status, start, numbers = watch.hold(seen)
            seconds += holding.seconds
            if start in ("cold", "warm"):
                watch.seconds_to_solve = holding.seconds
            watch.held = step
            del self._due[name]
        numbers = seen.numbers | numbers | {"seconds": seconds}
        selected = seen.selection
        positions = selected.index.reshape(selected.mask.shape[:-1])
        probability = seen.selected_probability
        self._keep(name, HeadRecord(step, due, status, start, positions, probability, numbers))

    def _seconds_to_solve(self, watch: Watch) -> float:
        """What the last solution took; before the first, what those of other heads took."""
        if watch.seconds_to_solve is not None:
            return watch.seconds_to_solve
        every = (other.seconds_to_solve for other in self._watches.values())
        known = [seconds for seconds in every if seconds is not None]
        return median(known) if known else 0.0

    def _keep(self, name: str, record: HeadRecord) -> None:
        """Adds a record; one more of the same step takes the place of the earlier."""
        records = self.records[name]
        if records and records[-1].step == record.step:
            records.pop()
        records.append(record)
