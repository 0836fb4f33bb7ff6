"""What exactness costs: the library's gradient against autodiff of the textbook softmax.

Both are compiled and differ in nothing else. Run as ``python -m benchmarks.exact_gradient``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attractor.attention import Parameters, get_loss, get_parameterization
from attractor.attention.scaled import Scaled
from attractor.support.errors import TrialStatus
from attractor.training import loop
from attractor.training.attention_training import AttentionTraining
from attractor.training.programs.trials import Trials
from benchmarks.experiments import EXPERIMENTS, Run, data, optimizer
from benchmarks.machine import Worker, machine, seconds, spread, versions

TRIALS, STEPS = 100, 500
"""Few enough steps for no textbook gradient to vanish, which would end the training early."""
RUNS = 7
PARTS = EXPERIMENTS["local convergence"]


@dataclass(frozen=True)
class TextbookTraining(AttentionTraining):
    """The same training by the gradient of ``mean log(1 + exp(-y <v, X^T softmax(X W z)>))``."""

    def _gradient(self, parameters: Any, fixed: Any, rows: Any) -> Any:
        def mean_loss(attention: Any) -> Any:
            weights = jax.nn.softmax(self.parameterization.scores(attention, rows))
            outputs = jnp.einsum("nkt,ntv->nkv", weights, rows.values)
            return jax.nn.softplus(-rows.labels * (outputs @ fixed.weight)).mean()

        gradient = jax.grad(mean_loss)(parameters.attention)
        return Parameters(jax.tree.map(lambda leaf: Scaled(leaf, jnp.zeros(())), gradient), None)


def trainings(part: Run) -> tuple[AttentionTraining, AttentionTraining]:
    """The exact one and the textbook one."""
    settings = (
        get_parameterization(part.parameterization),
        get_loss("logistic"),
        optimizer(part),
    )
    return AttentionTraining(*settings), TextbookTraining(*settings)


def in_training(training: AttentionTraining) -> Callable[[], None]:
    """The library's training loop, recording at both ends."""
    tokens, head = data(TRIALS)
    descent = training.optimizer
    trials = Trials(training, descent, tokens, head, None, seeds=1, seed=0, dtype="float64")

    def call() -> None:
        records = loop.run(training, trials, TRIALS, [0, STEPS])
        assert (records.status == TrialStatus.TRAINED).all()

    return call


def alone(training: AttentionTraining) -> Callable[[], None]:
    """A bare compiled loop of gradient and optimizer over all trials at once."""
    tokens, head = data(TRIALS)
    descent = training.optimizer
    trials = Trials(training, descent, tokens, head, None, seeds=1, seed=0, dtype="float64")
    with jax.enable_x64(True):
        state, rest = jax.tree.map(jnp.asarray, trials(np.arange(TRIALS)))

    def step(parameters: Any, memory: Any, rest: Any) -> Any:
        gradient = training._gradient(parameters, rest.head, rest.rows)
        return training.optimizer.step(gradient, memory, parameters)

    def steps(state: Any, rest: Any) -> Any:
        start = (state.parameters, state.memory)
        return jax.lax.fori_loop(0, STEPS, lambda _, now: jax.vmap(step)(*now, rest), start)

    compiled = jax.jit(steps)

    def call() -> None:
        with jax.enable_x64(True):
            jax.block_until_ready(compiled(state, rest))

    return call


LOOPS = {"gradient and step alone": alone, "the library's training loop": in_training}


def serve() -> None:
    """For each line read: seconds of every loop, exact and textbook, one after the other."""
    calls = [
        around(training)
        for part in PARTS
        for around in LOOPS.values()
        for training in trainings(part)
    ]
    for call in calls:
        call()
    print(flush=True)
    for _ in sys.stdin:
        print(*map(seconds, calls), flush=True)


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    worker = Worker("benchmarks.exact_gradient", "serve", single_thread=True)
    runs = np.array([worker.run() for _ in range(RUNS)])
    worker.close()
    runs = runs.reshape(RUNS, len(PARTS), len(LOOPS), 2) / (TRIALS * STEPS) * 1e6
    lines = []
    for place, part in enumerate(PARTS):
        for around, name in enumerate(LOOPS):
            exact, textbook = runs[:, place, around].T
            ratios = exact / textbook
            lines.append(
                f"| {part.name} | {name} | {spread(list(exact))} | {spread(list(textbook))} "
                f"| **{median(ratios):.2f}x** ({ratios.min():.2f} to {ratios.max():.2f}) |"
            )
    return f"""## Cost of the exact gradient

Normalized gradient descent, {TRIALS} data sets of n = 6, T = 8, d = 10, {STEPS} steps, float64,
compiled, warm; one core, one thread. The textbook side is `jax.grad` of the mean logistic loss of
`jax.nn.softmax`, without a mask, and the same in everything else: same loop, same optimizer, same
checks. Both sides ran in turn, {RUNS} times, in one process. The textbook gradient loses all its
digits once score gaps pass 36.

{machine()}; {versions("jax", "optax", "numpy")}

| trained | loop | exact, us a step and trial | textbook, us a step and trial | ratio |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve()
    else:
        print(section())
