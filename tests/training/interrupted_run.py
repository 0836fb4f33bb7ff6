"""A training run in a process of its own, for tests that kill it.

Usage: interrupted_run.py WHAT FOLDER RESULT EVERY DELAY. It trains with its checkpoint in FOLDER,
writes there every EVERY seconds, and leaves the numbers in RESULT. Every write and every stretch
of training takes DELAY seconds longer than it would, so that fast machines can be killed too.
"""

import dataclasses
import functools
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import attractor as at
from attractor.support import progress
from attractor.support.errors import TrialStatus
from attractor.support.storage import atomic
from attractor.training import loop, recording

ARRAYS = Path(__file__).parents[1] / "data" / "unit_tokens_6_8_10.npz"
TRIALS, STEPS = 60, 200_000
TRAIN_STEPS = 30_000


@dataclasses.dataclass(frozen=True)
class LogisticMap(loop.Objective):
    """A chaotic map, in which a single wrong bit changes everything within a hundred steps."""

    def step(self, state, data):
        new = data * state * (1 - state)
        diverged = ~jnp.isfinite(new).all()
        status = jnp.where(diverged, TrialStatus.DIVERGED, TrialStatus.TRAINED)
        return jnp.where(diverged, state, new), status

    def record(self, state, data):
        return {"first": state[0], "all": state, "last": state.sum()}


def gather(trials):
    rates = np.where(trials == 7, 4.5, 3.6 + 0.3 * trials / TRIALS)
    return np.linspace(0.2, 0.8, 8) + 1e-3 * trials[:, None], np.repeat(rates[:, None], 8, 1)


def stop(record):
    return (record["first"] > 0.96) & (record["first"] < 1)


def nothing(amount):
    pass


def run_loop(checkpoint=None, *, trials=TRIALS, advance=nothing, skip=nothing):
    return loop.run(
        LogisticMap(),
        gather,
        trials,
        recording.record_steps(STEPS),
        last_only=frozenset({"last"}),
        stop=stop,
        checkpoint=checkpoint,
        advance=advance,
        skip=skip,
    )


def arrays_of(records):
    return {**records.series, "status": records.status, "steps_taken": records.steps_taken}


def train(checkpoint=None, every=30.0):
    """Both factors of ninety-six trials, in mini-batches."""
    arrays = np.load(ARRAYS)
    run = at.train(
        at.Tokens(arrays["keys"][:8], arrays["queries"][:8], arrays["labels"][:8]),
        at.LinearHead(arrays["v"][:8]),
        at.normalized_gradient_descent(0.1),
        steps=TRAIN_STEPS,
        seeds=12,
        parameterization="KQ",
        batch_size=4,
        stop=lambda record: record["norm"] > 300,
        checkpoint=checkpoint,
        checkpoint_every=every,
    )
    return {name: run.data[name].to_numpy() for name in run.data}


def main(what, folder, result, every, delay):
    flush, delay = atomic._flush, float(delay)

    def slow_flush(path):
        time.sleep(delay)
        flush(path)

    def pause(*arguments):
        time.sleep(delay)

    atomic._flush = slow_flush
    progress.ProgressBar.__call__ = pause
    if what == "train":
        arrays = train(folder, float(every))
    else:
        checkpoint = loop.Checkpoint(folder, every=float(every))
        arrays = arrays_of(
            run_loop(checkpoint, advance=pause, skip=functools.partial(print, flush=True))
        )
    np.savez(result, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
