"""Blocks of trials: the unit that is compiled, trained and written to a checkpoint.

The number of trials in a compiled batch changes the last bits of their results. With a block of
fixed size as the unit, trial 37 run alone gives the very numbers of trial 37 of 100.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from attractor.support.errors import TrialStatus
from attractor.training.objective import Condition, Objective, Recorder, status_of
from attractor.training.programs.compilation import compiled_for
from attractor.training.programs.footprint import size_of

TrialSource = Callable[[Int[np.ndarray, "block"]], tuple[PyTree, PyTree]]
"""From numbers of trials to their initial states and data, with a leading axis on every leaf."""
Store = Callable[[int, int, dict[str, Array]], None]
"""Stores a measurement under the records from its first to its second argument."""

LARGEST_BLOCK = 25
"""Trials that are compiled together on a CPU, where they are no large ones."""
_LARGEST_BLOCK_OF_A_GPU = 1000
"""Where a step takes the same time for one trial as for hundreds."""
_BLOCK_BYTES = 256 * 2**20
_CALL_SECONDS = 0.5
"""Time of one call of the compiled step; between two, the run may be interrupted."""
_CALL_GROWTH = 8


class BlockProgress(NamedTuple):
    """How far the training of a block has come.

    Attributes:
        carry: State, steps taken and status of every trial, or ``None`` where nobody needs them.
        step: The step reached.
        records: Number of records stored.
    """

    carry: PyTree
    step: int
    records: int


@dataclass(frozen=True)
class BlockTrainer:
    """Trains blocks of trials, each from its initial states to the last record.

    Attributes:
        objective: The step and what is measured.
        stop: Ends the trials for which it is true of what is recorded, if given.
        trials: Returns initial states and data of some trials.
        recorded: The steps to record.
        size: Number of trials in a compiled block.
    """

    objective: Objective
    stop: Condition | None
    trials: TrialSource
    recorded: Int[np.ndarray, "records"]
    size: int

    def begin(self, block: Int[np.ndarray, "block"], device: Any) -> tuple[PyTree, PyTree]:
        """Carry before the first step, and data; a short block repeats its last trial."""
        padded = np.concatenate([block, np.repeat(block[-1:], self.size - len(block))])
        # Explicit types: weak ones would not survive a checkpoint, and compile the step twice.
        state, data = jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), self.trials(padded))
        carry = (state, np.zeros(self.size, np.int64), np.zeros(self.size, np.int32))
        return jax.device_put((carry, data), device)

    def compile(self, block: Int[np.ndarray, "block"], device: Any) -> None:
        """Compiles what a device needs, by taking no step and measuring."""
        carry, data = self.begin(block, device)
        advance, record = self._advance(carry, data), self._record(carry, data)
        jax.block_until_ready((advance(carry, data, np.int64(0)), record(carry)))

    def program(self, block: Int[np.ndarray, "block"], device: Any) -> str:
        """The text of the programs that are compiled."""
        carry, data = self.begin(block, device)
        texts = [self._advance(carry, data).lower(carry, data, np.int64(0)).as_text()]
        for recorder in self.objective.recorders:
            seen = recorder.seen(carry[0], data)
            texts.append(_compiled_recorder(recorder, seen).lower(*seen).as_text())
        return "".join(texts)

    def train(self, start: BlockProgress, data: PyTree, store: Store) -> Iterator[BlockProgress]:
        """Trains a block to the end.

        Args:
            start: How far it has come before.
            data: The data of its trials.
            store: Stores the measurements.

        Yields:
            How far the block has come, about twice a second and after every record.
        """
        carry, step, records = start
        last, ahead = int(self.recorded[-1]), 1
        advance, record = self._advance(carry, data), self._record(carry, data)
        while records < len(self.recorded):
            goal = int(self.recorded[records])
            target = min(goal, step + ahead)
            called = time.monotonic()
            carry, measured = advance(carry, data, np.int64(target)), None
            if target == goal:
                carry, measured = record(carry)
            ended = bool((np.asarray(carry[2]) != TrialStatus.TRAINED).all())
            if ended and measured is None:  # nothing moves until the next record, nor after it
                carry, measured = record(carry)
            if measured is not None:
                after = len(self.recorded) if ended else records + 1
                store(records, after, measured)
                records = after
            else:
                growth = _CALL_SECONDS / max(time.monotonic() - called, 1e-6)
                ahead = max(int(ahead * min(growth, _CALL_GROWTH)), 1)
            step = last if ended else target
            yield BlockProgress(carry, step, records)

    def _record(self, carry: PyTree, data: PyTree) -> Callable[[PyTree], Any]:
        """From a carry to the carry after a record, and to what is recorded."""
        parts = [
            (recorder.seen, _compiled_recorder(recorder, recorder.seen(carry[0], data)))
            for recorder in self.objective.recorders
        ]

        def record(carry: PyTree) -> tuple[PyTree, dict[str, Array]]:
            found: dict[str, Array] = {}
            for seen, program in parts:
                found |= program(*seen(carry[0], data))
            measured = dict(sorted(found.items()))
            if self.stop is not None or self.objective.heeds_records:
                constants, arrays = (self.objective, self.stop), (carry, measured)
                carry = compiled_for(_heeding, constants, arrays)(*arrays)
            return self._judged(carry, measured), measured

        return record

    def _judged(self, carry: PyTree, measured: dict[str, Array]) -> PyTree:
        """The carry after a measurement: trials whose loss is undefined have diverged."""
        state, taken, status = carry
        judged = status_of(self.objective, measured, status)
        if (judged == np.asarray(status)).all():
            return carry
        return state, taken, jax.device_put(judged, status.sharding)

    def _advance(self, carry: PyTree, data: PyTree) -> Any:
        side_by_side = self.objective.side_by_side
        return compiled_for(_advance, (self.objective,), (carry, data), side_by_side=side_by_side)


def _advance(
    objective: Objective, carry: PyTree, data: PyTree, target: Int[Array, ""] | np.int64
) -> PyTree:
    """Trains a block up to a step."""

    def unfinished(carry: PyTree) -> Array:
        _, taken, status = carry
        return (taken < target) & (status == TrialStatus.TRAINED)

    # To make a loop one of a whole block JAX goes through its body again and again, and remembers
    # what became of a jitted function.
    step_of_trial = jax.jit(objective.step)

    def train(carry: PyTree, data: PyTree) -> PyTree:
        def step(carry: PyTree) -> PyTree:
            state, taken, _ = carry
            state, status = step_of_trial(state, data)
            status = status.astype(jnp.int32)
            return state, taken + (status == TrialStatus.TRAINED), status

        return jax.lax.while_loop(unfinished, step, carry)

    with jax.default_matmul_precision("highest"):
        return jax.vmap(train)(carry, data)


def _compiled_recorder(recorder: Recorder, seen: tuple[PyTree, ...]) -> Any:
    return compiled_for(_record, (recorder,), seen, brief=True)


def _record(recorder: Recorder, *seen: PyTree) -> dict[str, Array]:
    """Measures a block."""
    with jax.default_matmul_precision("highest"):
        return jax.vmap(recorder.record)(*seen)


def _heeding(
    objective: Objective, stop: Condition | None, carry: PyTree, measured: dict[str, Array]
) -> PyTree:
    """The carry of a block after a record that its objective, or the condition to stop, heeds."""

    def heed(carry: PyTree, measured: dict[str, Array]) -> PyTree:
        state, taken, status = carry
        state = objective.recorded(state, measured)
        if stop is not None:
            met = jnp.asarray(stop(measured)) & (status == TrialStatus.TRAINED)
            status = jnp.where(met, jnp.int32(TrialStatus.STOPPED), status)
        return state, taken, status

    with jax.default_matmul_precision("highest"):
        return jax.vmap(heed)(carry, measured)


def block_size(objective: Objective, state: PyTree, data: PyTree, platform: str) -> int:
    """The largest block that fits a fixed amount of memory, judged by one trial alone."""
    largest = objective.largest_block
    if largest is None:
        largest = LARGEST_BLOCK if platform == "cpu" else _LARGEST_BLOCK_OF_A_GPU
    return int(np.clip(_BLOCK_BYTES // max(size_of((state, data)), 1), 1, largest))
