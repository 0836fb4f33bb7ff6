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
from jaxtyping import Array, Bool, Int, PyTree

from attractor.errors import TrialStatus
from attractor.training.compilation import compiled_for
from attractor.training.footprint import size_of
from attractor.training.objective import Condition, Objective, status_of

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
        """Compiles the step for a device, by taking none."""
        carry, data = self.begin(block, device)
        jax.block_until_ready(self._advance(carry, data)(carry, data, np.int64(0), np.bool_(True)))

    def program(self, block: Int[np.ndarray, "block"], device: Any) -> str:
        """The text of the program that is compiled."""
        carry, data = self.begin(block, device)
        arguments = carry, data, np.int64(0), np.bool_(True)
        return self._advance(carry, data).lower(*arguments).as_text()

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
        advance = self._advance(carry, data)
        while records < len(self.recorded):
            goal = int(self.recorded[records])
            target = min(goal, step + ahead)
            called = time.monotonic()
            carry, measured = advance(carry, data, np.int64(target), np.bool_(target == goal))
            if target == goal:
                carry = self._judged(carry, measured)
            ended = bool((np.asarray(carry[2]) != TrialStatus.TRAINED).all())
            if ended and target < goal:  # nothing moves until the next record, nor after it
                carry, measured = advance(carry, data, np.int64(goal), np.bool_(True))
                carry = self._judged(carry, measured)
            if ended or target == goal:
                after = len(self.recorded) if ended else records + 1
                store(records, after, measured)
                records = after
            else:
                growth = _CALL_SECONDS / max(time.monotonic() - called, 1e-6)
                ahead = max(int(ahead * min(growth, _CALL_GROWTH)), 1)
            step = last if ended else target
            yield BlockProgress(carry, step, records)

    def _judged(self, carry: PyTree, measured: dict[str, Array]) -> PyTree:
        """The carry after a measurement: trials whose loss is undefined have diverged."""
        state, taken, status = carry
        judged = status_of(self.objective, measured, status)
        if (judged == np.asarray(status)).all():
            return carry
        return state, taken, jax.device_put(judged, status.sharding)

    def _advance(self, carry: PyTree, data: PyTree) -> Any:
        constants = (self.objective, self.stop)
        side_by_side = self.objective.side_by_side
        return compiled_for(_advance, constants, (carry, data), side_by_side=side_by_side)


def _advance(
    objective: Objective,
    stop: Condition | None,
    carry: PyTree,
    data: PyTree,
    target: Int[Array, ""] | np.int64,
    recording: Bool[Array, ""] | np.bool_,
) -> tuple[PyTree, dict[str, Array]]:
    """Trains a block up to a step and, where that is recorded, measures it there."""

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

    def measure(carry: PyTree, data: PyTree) -> tuple[PyTree, dict[str, Array]]:
        state, taken, status = carry
        measured = objective.record(state, data)
        state = objective.recorded(state, measured)
        if stop is not None:
            met = jnp.asarray(stop(measured)) & (status == TrialStatus.TRAINED)
            status = jnp.where(met, jnp.int32(TrialStatus.STOPPED), status)
        return (state, taken, status), measured

    # Traced once for both branches: JAX remembers what it traced of a jitted function.
    measure_all = jax.jit(jax.vmap(measure), inline=True)

    def skip(carry: PyTree, data: PyTree) -> tuple[PyTree, dict[str, Array]]:
        _, measured = jax.eval_shape(measure_all, carry, data)
        return carry, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), measured)

    with jax.default_matmul_precision("highest"):
        carry = jax.vmap(train)(carry, data)
        return jax.lax.cond(recording, measure_all, skip, carry, data)


def block_size(objective: Objective, state: PyTree, data: PyTree, platform: str) -> int:
    """The largest block that fits a fixed amount of memory, judged by one trial alone."""
    largest = objective.largest_block
    if largest is None:
        largest = LARGEST_BLOCK if platform == "cpu" else _LARGEST_BLOCK_OF_A_GPU
    return int(np.clip(_BLOCK_BYTES // max(size_of((state, data)), 1), 1, largest))
