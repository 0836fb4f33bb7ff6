"""The training loop: many trials of one compiled step, recorded now and then.

It knows nothing of what is trained. Trials run in blocks of a fixed size, because the number of
trials in a compiled batch changes the last bits of their results: with the block as the unit,
trial 37 run alone gives the very numbers of trial 37 of 100. Blocks do not depend on each other
and run in a few threads.
"""

from __future__ import annotations

import abc
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from attractor.errors import TrialStatus
from attractor.precision import double_precision
from attractor.threads import processors

_LARGEST_BLOCK = 25
_BLOCK_BYTES = 256 * 2**20
_DISPATCH = 2000  # steps between two looks at whether the run was interrupted


class Objective(abc.ABC):
    """What is trained. It is hashable, and equal objectives share one compiled step."""

    @abc.abstractmethod
    def step(self, state: PyTree, data: PyTree) -> tuple[PyTree, Array]:
        """Takes one step of one trial; returns its new state and its ``TrialStatus``."""

    @abc.abstractmethod
    def record(self, state: PyTree, data: PyTree) -> dict[str, Array]:
        """Measures one trial where it stands."""


@dataclass
class Records:
    """What the loop measured, as arrays over (trial, record, ...).

    Attributes:
        series: Every recorded quantity; those kept only at the end have no record axis.
        status: How each trial ended, a ``TrialStatus``.
        steps_taken: How many steps changed the trial before it ended or froze.
    """

    series: dict[str, np.ndarray]
    status: Int[np.ndarray, "trial"]
    steps_taken: Int[np.ndarray, "trial"]


def run(
    objective: Objective,
    gather: Callable[[Int[np.ndarray, "block"]], tuple[PyTree, PyTree]],
    trials: int,
    recorded: Sequence[int] | Int[np.ndarray, "records"],
    *,
    last_only: frozenset[str] = frozenset(),
    advance: Callable[[float], None] = lambda amount: None,
) -> Records:
    """Trains every trial and records it at the steps asked for.

    Args:
        objective: The step and what is measured.
        gather: Gives initial states and data of some trials, with a leading axis on every leaf.
            What it gives for a trial must not depend on the others. Called from several threads.
        trials: Number of trials.
        recorded: Increasing steps; training ends with the last.
        last_only: Names of measurements to keep at the last step only.
        advance: Told the number of trial steps just done, for a progress bar.

    Returns:
        The measurements. A trial that diverged, or can move no further, stays as it was while
        the others go on.
    """
    size = _block_size(gather)
    blocks = [np.arange(i, min(i + size, trials)) for i in range(0, trials, size)]
    store = _Store(trials, len(recorded), last_only)
    train = functools.partial(
        _train_block, objective, gather, np.asarray(recorded), size, store, advance
    )
    with double_precision():  # compiles in this thread, so that the others find it compiled
        _advance(objective, *_start(gather, blocks[0], size), np.int64(0))
    pool = ThreadPoolExecutor(min(len(blocks), processors()))
    try:
        for done in as_completed([pool.submit(train, block) for block in blocks]):
            done.result()
    finally:
        store.abandoned.set()
        pool.shutdown(cancel_futures=True)
    return Records(store.series, store.status, store.steps_taken)


@dataclass
class _Store:
    """Where blocks put their measurements."""

    trials: int
    records: int
    last_only: frozenset[str]
    series: dict[str, np.ndarray] = field(default_factory=dict)
    abandoned: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.status = np.zeros(self.trials, dtype=np.int32)
        self.steps_taken = np.zeros(self.trials, dtype=np.int64)

    def write(self, block: np.ndarray, first: int, stop: int, measured: dict[str, Array]) -> None:
        """Stores one measurement of a block under the records from ``first`` to ``stop``."""
        trials = slice(block[0], block[-1] + 1)  # a slice, because indexing by arrays is slow
        for name, values in measured.items():
            once = name in self.last_only
            if once and stop < self.records:
                continue
            array = np.asarray(values)[: len(block)]
            with self._lock:
                if name not in self.series:
                    middle = () if once else (self.records,)
                    shape = (self.trials, *middle, *array.shape[1:])
                    self.series[name] = np.empty(shape, array.dtype)
            if once:
                self.series[name][trials] = array
            else:
                self.series[name][trials, first:stop] = array[:, None]


def _train_block(
    objective: Objective,
    gather: Callable[..., tuple[PyTree, PyTree]],
    recorded: Int[np.ndarray, "records"],
    size: int,
    store: _Store,
    advance: Callable[[float], None],
    block: Int[np.ndarray, "block"],
) -> None:
    with double_precision():  # the setting belongs to a thread
        carry, data = _start(gather, block, size)
        before = 0
        for step in np.union1d(recorded, np.arange(0, recorded[-1], _DISPATCH)):
            if store.abandoned.is_set():
                return
            carry, measured = _advance(objective, carry, data, np.int64(step))
            frozen = bool((np.asarray(carry[2]) != TrialStatus.TRAINED).all())
            first, stop = np.searchsorted(recorded, [step, step + 1])
            if frozen:
                step, stop = recorded[-1], len(recorded)
            if stop > first:
                store.write(block, int(first), int(stop), measured)
            advance(float(len(block) * (step - before)))
            before = step
            if frozen:
                break
    store.steps_taken[block] = np.asarray(carry[1])[: len(block)]
    store.status[block] = np.asarray(carry[2])[: len(block)]


@functools.partial(jax.jit, static_argnums=0)
def _advance(
    objective: Objective, carry: PyTree, data: PyTree, stop: Int[Array, ""] | np.int64
) -> tuple[PyTree, dict[str, Array]]:
    """Trains a block up to a step and measures it there."""

    def unfinished(carry: PyTree) -> Array:
        _, step, status = carry
        return (step < stop) & (status == TrialStatus.TRAINED)

    def one_trial(carry: PyTree, data: PyTree) -> tuple[PyTree, dict[str, Array]]:
        def step(carry: PyTree) -> PyTree:
            state, taken, _ = carry
            state, status = objective.step(state, data)
            status = status.astype(jnp.int32)
            return state, taken + (status == TrialStatus.TRAINED), status

        carry = jax.lax.while_loop(unfinished, step, carry)
        return carry, objective.record(carry[0], data)

    with jax.default_matmul_precision("highest"):
        return jax.vmap(one_trial)(carry, data)


def _start(
    gather: Callable[..., tuple[PyTree, PyTree]], block: Int[np.ndarray, "block"], size: int
) -> tuple[PyTree, PyTree]:
    """The state of a block before its first step; a short block repeats its last trial."""
    padded = np.concatenate([block, np.repeat(block[-1:], size - len(block))])
    states, data = jax.tree.map(jnp.asarray, gather(padded))
    return (states, jnp.zeros(size, jnp.int64), jnp.zeros(size, jnp.int32)), data


def _block_size(gather: Callable[..., tuple[PyTree, PyTree]]) -> int:
    """The largest block that fits a fixed amount of memory, judged by one trial alone."""
    one_trial = jax.tree.leaves(gather(np.zeros(1, dtype=np.int64)))
    size = sum(leaf.nbytes for leaf in one_trial)
    return int(np.clip(_BLOCK_BYTES // max(size, 1), 1, _LARGEST_BLOCK))
