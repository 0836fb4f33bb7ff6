"""Ten thousand trials in one call: seconds and memory of a fresh process.

Run as ``python -m benchmarks.many_trials``.
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.experiments import EXPERIMENTS, Run, data, optimizer
from benchmarks.machine import (
    Worker,
    graphics_processor,
    machine,
    peak_memory,
    seconds,
    versions,
)

TRIALS = 10_000
PARTS = {run.parameterization: run for run in EXPERIMENTS["local convergence"]}


def serve(part: Run) -> None:
    """Prints seconds, compilation included, and the gigabytes before and after training."""
    import attractor as at

    tokens, head = data(TRIALS)
    before = peak_memory()
    train = partial(at.train, parameterization=part.parameterization, steps=part.steps)
    taken = seconds(lambda: train(tokens, head, optimizer(part)))
    print(taken, before, peak_memory(), _device_memory(), flush=True)


def _device_memory() -> float:
    """Most memory held on the device, in GB; zero where that is the process's own."""
    import jax

    return ((jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)) / 1e9


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    gpu, lines = graphics_processor(), []
    for name, part in PARTS.items():
        for place in filter(None, ("CPU", gpu)):
            worker = Worker("benchmarks.many_trials", name, single_thread=False, gpu=place != "CPU")
            worker.close()
            taken, before, after, device = worker.ready
            on_device = f"{device:.2f}" if device else "the same"
            lines.append(
                f"| {part.name} | {place} | {taken:.1f} | {before:.2f} | **{after:.2f}** "
                f"| {on_device} |"
            )
    return f"""## {TRIALS:,} trials at once

Normalized gradient descent on {TRIALS:,} data sets of n = 6, T = 8, d = 10 in one call of `train`
with default settings, 2,000 steps, about 60 records, float64, default threads; each line in a
process of its own, once, tracing and compiling included. Recorded matrices are kept at every record
where they fit in 1 GB, as those of W do, else at the end. Memory is the most the whole process
held, imports included.

{machine()}; {versions("jax", "optax", "numpy")}

| trained | on | seconds | memory before training, GB | memory in all, GB | on the device, GB |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(PARTS[sys.argv[1]])
    else:
        print(section())
