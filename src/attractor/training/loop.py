"""The training loop: many trials of one compiled step, recorded at chosen steps.

It does not depend on what is trained. Blocks of trials do not depend on each other; they run in a
few threads, and on as many devices as there are.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from attractor.results.provenance.fingerprint import program_digest
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.support.storage import owned_folder
from attractor.support.threads import number_of_threads, under_the_same_settings
from attractor.training.measurements import Measurements, Records
from attractor.training.objective import Condition, Objective, check_condition
from attractor.training.programs.blocks import BlockProgress, BlockTrainer, TrialSource, block_size
from attractor.training.programs.footprint import check_run, footprint
from attractor.training.stored.checkpoint import MARKER, Checkpoint, recognize
from attractor.training.stored.saved_run import SavedRun

__all__ = ["Checkpoint", "Condition", "Objective", "Records", "run"]


def run(
    objective: Objective,
    trials: TrialSource,
    count: int,
    recorded: Sequence[int] | Int[np.ndarray, "records"],
    *,
    instances: int = 1,
    last_only: frozenset[str] = frozenset(),
    stop: Condition | None = None,
    checkpoint: Checkpoint | None = None,
    advance: Callable[[float], None] = lambda amount: None,
    skip: Callable[[float], None] = lambda amount: None,
) -> Records:
    """Trains every trial and records it at the requested steps.

    Args:
        objective: The step and what is measured.
        trials: Returns initial states and data of some trials, with a leading axis on every leaf.
            Those of a trial must not depend on the others. Called from several threads.
        count: Number of trials.
        recorded: Increasing steps; training ends with the last.
        instances: Number of data sets; the trials are so many for each seed.
        last_only: Names of measurements to keep at the last step only.
        stop: Traced by JAX and evaluated on what is recorded of a trial, wherever it is recorded;
            a trial for which it is true is terminated there.
        checkpoint: Where to write the state of the run at intervals. The same call then resumes
            from there, with the very numbers of a run that was never interrupted.
        advance: Called with the number of trial steps just done, for a progress bar.
        skip: Called with the number of trial steps that an earlier call has done.

    Returns:
        The measurements. A trial that diverged, or can move no further, keeps its last state
        while the others go on.

    Raises:
        InvalidInputError: If ``stop`` cannot be used, the run does not fit into memory, or the
            checkpoint is of another run.
        FileFormatError: If the checkpoint is damaged.
    """
    recorded = np.asarray(recorded)
    with double_precision():
        one_trial = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype),
            trials(np.zeros(1, dtype=np.int64)),
        )
    if stop is not None:
        check_condition(objective, stop, *one_trial)
    size = block_size(objective, *one_trial, _devices()[0].platform)
    needed = footprint(
        objective, *one_trial, trials=count, records=len(recorded), block=size,
        blocks=max(len(_devices()), number_of_threads()), last_only=last_only,
    )  # fmt: skip
    check_run(needed, trials=count, records=len(recorded), instances=instances)
    trainer = BlockTrainer(objective, stop, trials, recorded, size)
    blocks = [np.arange(i, min(i + size, count)) for i in range(0, count, size)]
    measurements = Measurements(count, len(recorded), last_only)
    with contextlib.ExitStack() as stack:
        saved = None
        if checkpoint is not None:
            folder = stack.enter_context(
                owned_folder(checkpoint.path, MARKER, argument="checkpoint")
            )
            saved = _resume(folder, checkpoint, trainer, blocks, measurements)
            done = zip(blocks, saved.progress, strict=True)
            skip(float(sum(len(block) * reached.step for block, reached in done)))
        _Workers(trainer, blocks, measurements, saved, advance).train()
    return Records(measurements.series, measurements.status, measurements.steps_taken)


def _resume(
    folder: Path,
    checkpoint: Checkpoint,
    trainer: BlockTrainer,
    blocks: list[Int[np.ndarray, "block"]],
    measurements: Measurements,
) -> SavedRun:
    """Opens the run in a folder, once it is known to be this one."""
    device = _devices()[0]
    checkpoint = replace(
        checkpoint,
        settings={
            "trials": measurements.trials,
            "block size": trainer.size,
            "kept at the end only": sorted(measurements.last_only),
            "stop": trainer.stop,
            **checkpoint.settings,
        },
        data={"recorded steps": trainer.recorded, **checkpoint.data},
    )
    with double_precision():
        program = program_digest(trainer.program(blocks[0], device))
    moved = recognize(folder, checkpoint, program, device)
    saved = SavedRun(folder, checkpoint.every, blocks, measurements)
    if moved and not all(map(saved.ended, range(len(blocks)))):
        raise InvalidInputError(
            "checkpoint",
            f"the run in {folder} would not go on with the same numbers: {moved}",
            "Resume where it was begun, or give another folder",
        )
    return saved


@dataclass
class _Workers:
    """Threads that take one block after another, each thread with its device."""

    trainer: BlockTrainer
    blocks: list[Int[np.ndarray, "block"]]
    measurements: Measurements
    saved: SavedRun | None
    advance: Callable[[float], None]

    def __post_init__(self) -> None:
        numbers = range(len(self.blocks))
        saved = self.saved
        self.pending = collections.deque(n for n in numbers if not (saved and saved.ended(n)))
        self.abandoned = threading.Event()

    def train(self) -> None:
        """Trains every block that has not ended, and writes the last checkpoint."""
        devices = _devices()[: len(self.pending)]
        if not devices:
            return
        workers = min(len(self.pending), max(len(devices), number_of_threads()))
        pool = ThreadPoolExecutor(workers)
        try:
            # Each device compiles once; two workers that find nothing compiled would do it twice.
            compile_, work = map(under_the_same_settings, (self._compile, self._work))
            _all_done(pool.submit(compile_, device) for device in devices)
            turns = itertools.islice(itertools.cycle(devices), workers)
            _all_done(pool.submit(work, device) for device in turns)
        finally:
            self.abandoned.set()
            pool.shutdown(cancel_futures=True)
            if self.saved is not None:
                self.saved.write()

    def _compile(self, device: Any) -> None:
        with double_precision():  # the setting belongs to a thread
            self.trainer.compile(self.blocks[0], device)

    def _work(self, device: Any) -> None:
        with double_precision():
            while not self.abandoned.is_set():
                try:
                    number = self.pending.popleft()
                except IndexError:
                    return
                self._train(number, device)

    def _train(self, number: int, device: Any) -> None:
        block = self.blocks[number]
        carry, data = self.trainer.begin(block, device)
        start = BlockProgress(carry, 0, 0)
        if self.saved is not None:
            carry = jax.device_put(self.saved.carry(number, carry), device)
            start = self.saved.progress[number]._replace(carry=carry)
        step = start.step
        store = functools.partial(self.measurements.write, block)
        for reached in self.trainer.train(start, data, store):
            if reached.records == len(self.trainer.recorded):
                _, steps_taken, status = reached.carry
                self.measurements.finish(block, steps_taken, status)
            if self.saved is not None:
                self.saved.note(number, reached)
            self.advance(float(len(block) * (reached.step - step)))
            step = reached.step
            if self.abandoned.is_set():
                return


def _all_done(futures: Iterable[Future[None]]) -> None:
    """Waits until all is done, or raises the first exception."""
    for future in as_completed(list(futures)):
        future.result()


def _devices() -> list[Any]:
    """The devices to train on: every one of this process, unless the user has chosen one."""
    chosen = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if chosen is None:
        return jax.local_devices()
    return jax.local_devices(backend=chosen) if isinstance(chosen, str) else [chosen]
