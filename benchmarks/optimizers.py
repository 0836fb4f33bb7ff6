"""What a step of every registered optimizer costs: ``python -m benchmarks.optimizers``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.experiments import DATA_SETS, LEARNING_RATE, data
from benchmarks.machine import Worker, machine, seconds_of_steps, spread, versions

STEPS = 300
RUNS = 5
NEEDED: dict[str, dict[str, Any]] = {"steepest descent": {"geometry": "l_3"}}
"""Settings of those that have no default for them."""
FACTORS = frozenset({"composed spectral descent"})
"""Those that train keys and queries, and no W."""
FURTHER = ("muon:method=exact", "md:p=1.75", "md:p=2", "md:p=3")
"""Optimizers of which one more kind is timed."""
REFERENCE = "normalized gradient descent"


def names() -> list[str]:
    """Every registered optimizer, the reference first."""
    from attractor.training import registered_optimizers

    registered = [entry.name for entry in registered_optimizers()]
    return [REFERENCE, *(name for name in registered if name != REFERENCE), *FURTHER]


def serve() -> None:
    """For each line read: seconds of training by every optimizer, one after the other."""
    calls = [training(name) for name in names()]
    for call in calls:
        call(1)
    print(flush=True)
    for _ in sys.stdin:
        print(*(seconds_of_steps(call, STEPS) for call in calls), flush=True)


def training(name: str) -> Callable[[int], Any]:
    """A call of ``train`` that records at both ends only."""
    import attractor as at
    from attractor.training import get_optimizer, registered_optimizers

    entries = {entry.name: entry for entry in registered_optimizers()}
    rate = LEARNING_RATE if name not in entries or entries[name].takes_learning_rate else None
    optimizer = get_optimizer(name, rate, **NEEDED.get(name, {}))
    tokens, head = data()
    options = {"parameterization": "KQ"} if name in FACTORS else {}
    return lambda steps: at.train(
        tokens, head, optimizer, steps=steps, record=[0], weights="last", **options
    )


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    worker = Worker("benchmarks.optimizers", "serve", single_thread=True)
    columns = list(zip(*(worker.run() for _ in range(RUNS)), strict=True))
    worker.close()
    lines = []
    for name, column in zip(names(), columns, strict=True):
        of_reference = [a / b for a, b in zip(column, columns[0], strict=True)]
        steps = [1e6 * one / (STEPS - 1) for one in column]
        settings = ", ".join(f"{key} {value}" for key, value in NEEDED.get(name, {}).items())
        settings = settings or "of K and Q" * (name in FACTORS)
        lines.append(
            f"| {name}{settings and f' ({settings})'} "
            f"| {spread(steps)} | {median(of_reference):.2f}x |"
        )
    return f"""## Cost of a step of every optimizer

Microseconds of one step of all {DATA_SETS} data sets of n = 6, T = 8, d = 10 on W, or on K and Q
where it says so, with the optimizers' default settings and a rate of {LEARNING_RATE}: what {STEPS}
steps of `train` take beyond a call of one step, warm; one core, one thread, float64. {RUNS} runs,
all in turn.

{machine()}; {versions("jax", "optax", "numpy")}

| optimizer | us a step of {DATA_SETS} trials | over normalized gradient descent |
| --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve()
    else:
        print(section())
