"""The monitor a training loop calls."""

from __future__ import annotations

import contextlib
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from rich.console import Console

from attractor.geometry import Geometry, get_geometry
from attractor.heads.monitor.head import WatchedHead
from attractor.heads.monitor.record import (
    NUMBERS,
    HeadRecord,
    RecordStatus,
    latest_record,
    latest_table,
    notes,
    records_seen,
)
from attractor.heads.monitor.watch import SharedCalls, Watch, attempted
from attractor.margin.methods import methods_for
from attractor.results import Plotted, Printed, load_data, save_data
from attractor.support.checks import as_number, check_count, check_function, check_share
from attractor.support.errors import AttractorError, AttractorWarning, InvalidInputError
from attractor.support.randomness import check_seed, generator, seeded

if TYPE_CHECKING:
    import xarray as xr

KIND = "records of attention heads"
"""The kind of a file of them."""
FREE = 5.0
"""Seconds of records that no budget counts: they would else be missing where training is short."""
_RANDOM = "random matrices in place of heads"
_WATCHED = "heads that are watched"


class HeadMonitor(Plotted, Printed):
    """Records attention heads while a loop of the user's trains them.

    Every ``every`` steps each head is compared with the margin problem of the tokens it selects on
    its probe batch: ``(min_j a_j^T W b_j) / ||W|| * ||W*||`` is at most 1, and 1 where the head
    points where gradient descent takes a saturating head (*Transformers as Support Vector
    Machines*, arXiv 2308.16898, convergence to the max-margin solution). The solution is certified
    and kept: while the selection and the tokens stay it is used again, and where they move it is
    solved for from the multipliers before. A selection that no matrix can make is recorded as
    infeasible.

    Records keep to ``budget``, a share of the time since the first call, and five seconds besides,
    so that small models have all their records at the same steps: a record that would exceed both
    is postponed to the first later step at which it does not, with the status ``POSTPONED``. A
    record is never cut short, so that the time used exceeds the share by one record at most, where
    one takes longer than those before it; or by the time of one call that heads share, as it
    would have to be made again for heads that it is not used for at once. With ``budget=None``
    nothing is postponed, and the records depend on no clock.

    A training run is never ended by it, nor changed. ``check`` says before training whether all
    heads can be read; what goes wrong later, such as a function that raises or a solver that fails,
    is a status in the records with its ``problem``, and a warning, once for each cause.

    Attributes:
        records: The records of each head by its name, in order.
        random_ratios: Margin ratios that ``compare_with_random`` found, by the name of the head.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> probe = at.Tokens(keys, queries=[[1, 0], [0, 1]])
        >>> monitor = at.HeadMonitor(
        ...     at.WatchedHead("head 0", lambda state: state["W"], probe), every=10, budget=None
        ... )
        >>> W = np.zeros((2, 2))
        >>> for step in range(31):
        ...     W = W + [[1, 0], [-1, 1]]
        ...     monitor(step, {"W": W})
        >>> [round(one.numbers["margin_ratio"], 2) for one in monitor.records["head 0"]]
        [0.89, 0.89, 0.89, 0.89]
    """

    _plots = "attractor.heads.plots"

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
            budget: Share of the loop's time that records may take beyond the first five seconds,
                or None for no limit. What they cost besides, such as caches that the loop finds
                cold, comes on top.
            tolerance: Relative duality gap to reach.
            max_constraints: Most constraints, one for each query and token it leaves out, that a
                probe batch may make.
            clock: Returns the time in seconds.

        Raises:
            InvalidInputError: If an argument is of the wrong kind, two heads share a name, the
                geometry has no solver, or a probe batch is known to make too many constraints.
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
        check_share("tolerance", tolerance, 1e-9)
        self.records: dict[str, list[HeadRecord]] = {name: [] for name in names}
        self.random_ratios: dict[str, Float[np.ndarray, "draw"]] = {}
        self._budget = Budget(budget, clock)
        self._shared = SharedCalls(clock)
        self._watches = {head.name: Watch(head, self.geometry, tolerance, most) for head in chosen}
        for watch in self._watches.values():
            watch.check_size(watch.head.known_constraints or 0)
        self._due: dict[str, int] = {}
        self._said: set[str] = set()

    def __call__(self, step: int, state: Any) -> None:
        """Records what is due at a step; does nothing at most steps.

        It raises nothing. What goes wrong is a status in the records, and a warning, once for each
        cause.

        Args:
            step: Number of the step.
            state: What the functions of the heads read: a module, a tree of parameters.
        """
        with self._guarded(step):
            self._budget.begin()
            fresh = step % self.every == 0
            if not fresh and not self._due:
                return
            if fresh:
                self._due = dict.fromkeys(self._watches, step)
            if self._fits(self._waiting()[0], step):
                self._visit(step, state, forced=False)
            if fresh:
                for records in self.records.values():
                    if not records or records[-1].step != step:
                        records.append(HeadRecord(step, step, RecordStatus.POSTPONED))

    def record(self, step: int, state: Any) -> None:
        """Records every head at once, whatever the step and the time it takes.

        Like a call of the monitor it raises nothing but of a step that is no count.
        """
        step = check_count("step", step, 0)
        with self._guarded(step):
            self._budget.begin()
            self._due = dict.fromkeys(self._watches, step)
            self._visit(step, state, forced=True)

    def check(self, state: Any) -> None:
        """Reads every head once and records nothing, before a loop in which nothing is raised.

        ``hook`` and ``trainer_callback`` do so before training.

        Args:
            state: What the functions of the heads read.

        Raises:
            InvalidInputError: If a head cannot be read, or makes too many constraints.
        """
        with seeded(purpose=_WATCHED):
            try:
                for watch in self._watches.values():
                    watch.check(state, self._shared)
            finally:
                self._shared.forget()

    def hook(self, state: Any, *, first: int = 1) -> Callable[..., None]:
        """A function that calls the monitor with the next step each time, for hooks.

        ``optimizer.register_step_post_hook(monitor.hook(model))`` records a PyTorch model.

        Args:
            state: What the heads read, the same object at every step.
            first: Number of the first step.

        Raises:
            InvalidInputError: If a head cannot be read in it, or makes too many constraints.
        """
        step = check_count("first", first, 0) - 1
        self.check(state)

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

    def compare_with_random(
        self, draws: int = 19, seed: int = 0
    ) -> dict[str, Float[np.ndarray, "draw"]]:
        """Finds the margin ratios of random matrices in place of each head, for the table.

        A margin ratio has no scale of its own: a head of a hundredth may be far above what weights
        at random have on the same tokens. A draw is a product of Gaussian factors of the rank of
        the head, on the tokens of its latest record, and is held against the certified solution
        for what it selects itself. It takes about as long as so many records without a solution
        before them, outside of the budget, and they are not drawn anew by later records.

        Args:
            draws: How many for each head. A head above all 19 is so by chance once in 20 times.
            seed: Their seed.

        Returns:
            The ratios by the name of the head, which ``random_ratios`` keeps; heads that were never
            compared with a solution are not among them.
        """
        draws, seed = check_count("draws", draws), check_seed("seed", seed)
        self.random_ratios = {
            name: found
            for place, (name, watch) in enumerate(self._watches.items())
            if (found := watch.random_ratios(draws, generator(seed, place, purpose=_RANDOM)))
            is not None
        }
        return dict(self.random_ratios)

    def to_xarray(self) -> xr.Dataset:
        """All records as labeled arrays over step, head, sequence and query.

        Numbers that are not known are NaN, as are probabilities in rows of padding; selected tokens
        are -1 there, and where several tie.
        """
        return as_dataset(self.records, self.geometry)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all records as NetCDF; the file appears whole or not at all.

        Raises:
            InvalidInputError: If the path does not end in .nc.
        """
        save_data(self.to_xarray(), path, KIND)

    def _picture(self) -> tuple[str, xr.Dataset]:
        return "heads_figure", self.to_xarray()

    def _seen(self) -> str:
        return records_seen(self.to_xarray())

    def _print(self, console: Console) -> None:
        latest = {name: latest_record(records) for name, records in self.records.items()}
        words = {name: watch.head.words for name, watch in self._watches.items()}
        console.print(latest_table(latest, self.geometry, words, self.random_ratios), markup=False)
        for line in notes(latest, self.random_ratios):
            console.print(line, highlight=False, markup=False)
        share = 100 * self.overhead
        digits = ".0f" if share >= 10 else ".2g"
        console.print(f"{share:{digits}} % of the time went into records", highlight=False)

    def _waiting(self) -> list[str]:
        """The heads that are due, those first that were compared with a solution longest ago."""
        return sorted(self._due, key=lambda name: self._watches[name].compared)

    def _fits(self, name: str, step: int) -> bool:
        """Whether there is time to read a head and, where its record is late, to solve for it."""
        watch = self._watches[name]
        seconds = watch.seconds_to_observe + self._shared.seconds_to_call(watch.head.shared)
        if self._due[name] < step:
            seconds += self._seconds_to_solve(watch)
        return self._allows(seconds)

    def _allows(self, seconds: float) -> bool:
        """Whether there is time for more; what is read already would else have to be read again."""
        return self._budget.allows(seconds - self._shared.seconds)

    def _visit(self, step: int, state: Any, *, forced: bool) -> None:
        """Records heads that are due, as long as there is time; none overtakes another."""
        with contextlib.suppress(Exception):  # which heads meet again, and say
            jax.block_until_ready(state)  # the training step still running is not ours to count
        solving = True
        with seeded(purpose=_WATCHED):
            try:
                for name in self._waiting():
                    if not forced and not self._fits(name, step):
                        break
                    self._visit_one(name, step, state, forced=forced, solving=solving)
                    solving = solving and name not in self._due
            finally:
                self._shared.forget()

    def _visit_one(self, name: str, step: int, state: Any, *, forced: bool, solving: bool) -> None:
        """Records one head, without a solution where that would take too long."""
        watch, due = self._watches[name], self._due[name]
        before = self._shared.seconds
        with self._budget.charged() as observing:
            seen, error = attempted(watch.observe, state, self._shared)
        seconds = observing.seconds
        watch.seconds_to_observe = seconds - (self._shared.seconds - before)
        if error is not None:
            self._fail(name, HeadRecord(step, due, RecordStatus.UNREADABLE), error)
            return
        if seen is None:
            self._keep(name, HeadRecord(step, due, RecordStatus.NOT_FINITE))
            return
        status, start, numbers = RecordStatus.POSTPONED, "", {}
        _, error = attempted(watch.check_size, int(seen.numbers["constraints"]))
        if error is not None:
            status = RecordStatus.TOO_LARGE
        elif (
            forced
            or watch.reference.is_of(seen.tokens, seen.selection)
            or (solving and self._allows(self._seconds_to_solve(watch)))
        ):
            with self._budget.charged() as comparing:
                found, error = attempted(watch.compare, seen)
            status, start, numbers = found or (RecordStatus.UNSOLVED, "", {})
            seconds += comparing.seconds
            if start in ("cold", "warm") or error is not None:
                watch.seconds_to_solve = comparing.seconds
            watch.compared = step
        numbers = seen.numbers | numbers | {"seconds": seconds}
        chosen = seen.selected, seen.selected_probability
        record = HeadRecord(step, due, status, start, *chosen, numbers)
        if error is None:
            self._keep(name, record)
        else:
            self._fail(name, record, error)

    @contextlib.contextmanager
    def _guarded(self, step: int) -> Iterator[None]:
        """Lets no exception of the block end a training run; an interruption may."""
        try:
            yield
        except Exception as error:
            self._warn(f"nothing was recorded at step {step}", sentence(error))
            for name, due in [*self._due.items()]:
                self._fail(name, HeadRecord(step, due, RecordStatus.UNREADABLE), error)

    def _fail(self, name: str, record: HeadRecord, error: Exception) -> None:
        """Keeps the record of what failed, with the reason."""
        problem = sentence(error)
        self._warn(f"head {name!r}, step {record.step}: {record.status}", problem)
        self._keep(name, replace(record, problem=problem))

    def _warn(self, what: str, problem: str) -> None:
        """Warns of a problem, once: those that differ in numbers alone have one cause."""
        cause = re.sub(r"\w*\d\w*", "", problem)
        if cause not in self._said:
            self._said.add(cause)
            warnings.warn(
                f"HeadMonitor: {what}. {problem} Training is as it would be without. The records "
                "say where else this is so.",
                AttractorWarning,
                stacklevel=2,
            )

    def _seconds_to_solve(self, watch: Watch) -> float:
        """Time of the last solution; before the first, the median of the other heads."""
        if watch.seconds_to_solve is not None:
            return watch.seconds_to_solve
        every = (other.seconds_to_solve for other in self._watches.values())
        known = [seconds for seconds in every if seconds is not None]
        return median(known) if known else 0.0

    def _keep(self, name: str, record: HeadRecord) -> None:
        """Adds a record; one more of the same step takes the place of the earlier."""
        if record.status is not RecordStatus.POSTPONED:
            self._due.pop(name, None)
        records = self.records[name]
        if records and records[-1].step == record.step:
            records.pop()
        records.append(record)


def sentence(error: Exception) -> str:
    """What an error says, with its kind where it is not one of ours."""
    said = " ".join(str(error).split())[:300]
    if isinstance(error, AttractorError):
        return said
    return f"{type(error).__name__}{': ' if said else ''}{said}."


def load_records(path: str | os.PathLike[str]) -> xr.Dataset:
    """Reads a file that ``HeadMonitor.save`` wrote.

    Raises:
        FileFormatError: If it is none.
    """
    return load_data(path, KIND)


def as_dataset(records: dict[str, list[HeadRecord]], geometry: Geometry) -> xr.Dataset:
    """The records of all heads over step, head, sequence and query.

    A step at which a head has no record has an empty status; its numbers are NaN.
    """
    steps = sorted({record.step for rows in records.values() for record in rows})
    place = {step: i for i, step in enumerate(steps)}
    seen = [r.selected.shape for rows in records.values() for r in rows if r.selected is not None]
    rows_shape = tuple(max((shape[k] for shape in seen), default=0) for k in (0, 1))
    shape = (len(steps), len(records))
    numbers = {name: np.full(shape, np.nan) for name in NUMBERS}
    words = {name: np.full(shape, "", dtype=object) for name in ("status", "start", "problem")}
    due = np.full(shape, -1)
    selected = np.full((*shape, *rows_shape), -1)
    probability = np.full((*shape, *rows_shape), np.nan)
    for j, rows in enumerate(records.values()):
        for record in rows:
            at = place[record.step], j
            for name, told in words.items():
                told[at] = str(getattr(record, name))
            due[at] = record.due
            for name, number in record.numbers.items():
                numbers[name][at] = number
            if record.selected is not None and record.selected_probability is not None:
                n, k = record.selected.shape
                selected[at][:n, :k] = record.selected
                probability[at][:n, :k] = record.selected_probability
    along, per_query = ("step", "head"), ("step", "head", "sequence", "query")
    data = xr.Dataset(
        {name: (along, values, {"meaning": NUMBERS[name]}) for name, values in numbers.items()}
        | {name: (along, values.astype(str)) for name, values in words.items()}
        | {
            "due": (along, due),
            "selected": (per_query, selected),
            "selected_probability": (per_query, probability),
        },
        coords={"step": np.array(steps, dtype=int), "head": np.array([*records], dtype=str)},
    )
    return data.assign_attrs(geometry=geometry.name)


class Budget:
    """A share of the time since the first reading of the clock, and the time used of it.

    Attributes:
        share: The share, or None where there is no limit.
        spent: Seconds used.
    """

    def __init__(self, share: float | None, clock: Callable[[], float]) -> None:
        """Stores the share; time runs from the first call of ``begin``.

        Raises:
            InvalidInputError: Unless the share is None or a positive number.
        """
        if share is not None and not as_number(share) > 0:
            raise InvalidInputError(
                "budget",
                f"it is {share!r}",
                "Give a share of the loop's time such as 0.05, or None for no limit",
            )
        self.share = share
        self.spent = 0.0
        self._clock = clock
        self._start: float | None = None

    def begin(self) -> None:
        """Starts the clock, once."""
        if self._start is None:
            self._start = self._clock()

    @property
    def elapsed(self) -> float:
        """Seconds since ``begin``."""
        return 0.0 if self._start is None else self._clock() - self._start

    def allows(self, seconds: float) -> bool:
        """Whether so many seconds more stay within the share and what is free."""
        return self.share is None or self.spent + seconds <= FREE + self.share * self.elapsed

    @contextlib.contextmanager
    def charged(self) -> Iterator[Stopwatch]:
        """Counts the time of the block, whether or not it ends well."""
        stopwatch, start = Stopwatch(), self._clock()
        try:
            yield stopwatch
        finally:
            stopwatch.seconds = self._clock() - start
            self.spent += stopwatch.seconds


class Stopwatch:
    """Seconds that a block took, once it has ended."""

    seconds: float = 0.0
