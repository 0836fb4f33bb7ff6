"""Published training experiments: all data sets at once against one at a time.

Run as ``python -m benchmarks.training``, or ``python -m benchmarks.training local convergence``
for one experiment alone.
"""

from __future__ import annotations

import sys
from functools import partial
from statistics import median

import numpy as np

from benchmarks.experiments import DATA_SETS, EXPERIMENTS, Run, train
from benchmarks.machine import (
    Worker,
    graphics_processor,
    machine,
    seconds,
    spread,
    versions,
)

SAMPLE = 2
"""Data sets that the usual way is timed on in each run."""
ROUNDS = 5
COMPARED_STEPS, COMPARED_DATA_SETS = 30, 5
# Further on the textbook gradient of the usual way loses digits to cancellation, (K, Q) first.

Round = tuple[list[float], list[float], list[float]]
"""Seconds of each part of an experiment: first call, later call, the usual way."""


def serve_ours(parts: tuple[Run, ...]) -> None:
    """Prints the seconds of the first call of each part, then those of a later one."""
    import attractor.datasets  # noqa: F401 - imports are not timed, as on the other side

    print(*(seconds(partial(train, part)) for part in parts), flush=True)
    for _ in sys.stdin:
        print(*(seconds(partial(train, part)) for part in parts), flush=True)


def serve_usual(parts: tuple[Run, ...]) -> None:
    """Trains a few data sets for each line read; prints the seconds that all would take."""
    import torch

    from benchmarks.one_at_a_time import Trainer

    torch.set_num_threads(1)
    trainers = [Trainer(part) for part in parts]
    for trainer in trainers:
        trainer(0, steps=10)
    print(flush=True)
    for turn, _ in enumerate(sys.stdin):
        first = turn * SAMPLE
        taken = [seconds(partial(trainer.several, first, first + SAMPLE)) for trainer in trainers]
        print(*(one * DATA_SETS / SAMPLE for one in taken), flush=True)


def serve_difference(parts: tuple[Run, ...]) -> None:
    """Prints how far apart the matrices of both sides are after some steps, relative to them."""
    from benchmarks.one_at_a_time import Trainer

    found = []
    for part in parts:
        ours = np.asarray(train(part, COMPARED_STEPS).data["W"])[:, 0, -1]
        trainer, apart = Trainer(part), []
        for index in range(COMPARED_DATA_SETS):
            usual = trainer(index, COMPARED_STEPS)
            apart.append(np.linalg.norm(usual - ours[index]) / np.linalg.norm(usual))
        found.append(max(apart))
    print(*found, flush=True)


def compare(name: str, *, single_thread: bool, gpu: bool = False) -> list[Round]:
    """Times both sides in turn; ours starts anew in each round."""
    start = partial(Worker, "benchmarks.training", single_thread=single_thread)
    usual = start("usual", name)
    rounds = []
    for _ in range(ROUNDS):
        ours = start("ours", name, gpu=gpu)
        later = ours.run()
        ours.close()
        rounds.append((ours.ready, later, usual.run()))
    usual.close()
    return rounds


def difference(name: str) -> list[float]:
    """How far apart both sides are, part by part."""
    worker = Worker("benchmarks.training", "difference", name, single_thread=True)
    worker.close()
    return worker.ready


def row(threads: str, part: str, rounds: list[tuple[float, float, float]]) -> str:
    """One line of the table."""
    first, later, usual = (list(side) for side in zip(*rounds, strict=True))
    warm = [c / b for _, b, c in rounds]
    cold = [c / a for a, _, c in rounds]
    return (
        f"| {threads} | {part} | {spread(later)} | {spread(first)} | {spread(usual)} "
        f"| **{median(warm):.0f}x** ({min(warm):.0f} to {max(warm):.0f}) "
        f"| **{median(cold):.0f}x** ({min(cold):.0f} to {max(cold):.0f}) |"
    )


def table(name: str, settings: list[tuple[str, bool, bool]]) -> str:
    """The table of one experiment."""
    parts = EXPERIMENTS[name]
    lines = []
    for threads, single_thread, gpu in settings:
        rounds = compare(name, single_thread=single_thread, gpu=gpu)
        for place, part in enumerate(parts):
            of_part = [tuple(side[place] for side in sides) for sides in rounds]
            lines.append(row(threads, f"{part.name}, {part.steps:,} steps", of_part))
        lines.append(row(threads, "**all**", [tuple(map(sum, sides)) for sides in rounds]))
    apart = ", ".join(f"{value:.1e}" for value in difference(name))
    return f"""**{name.capitalize()}.** {EXPLAINED[name]}
After {COMPARED_STEPS} steps from the same start the matrices of both sides differ, relative to
their norm, by {apart} (worst of {COMPARED_DATA_SETS} data sets).

| threads | trained | ours, s | ours, first call, s | usual way, s | ratio | ratio, first call |
| --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


EXPLAINED = {
    "local convergence": """Normalized gradient descent of *Transformers as Support Vector Machines*
(arXiv 2308.16898) on W, and on K and Q: each of these divided by the norm of its own gradient, and
2.22e-16 times its square added to the loss.""",
    "mirror descent": """Normalized mirror descent on W of *Optimizing Attention with Mirror
Descent* (arXiv 2410.14581), potential sum |W_ij|^p / p, for the published numbers of steps.""",
}


def section(names: tuple[str, ...] = tuple(EXPERIMENTS)) -> str:
    """Measures and returns a section of RESULTS.md."""
    settings = [("one core, one thread", True, False), ("default threads", False, False)]
    gpu = graphics_processor()
    if gpu is not None:
        settings.append((f"{gpu}; the usual way on the CPU", False, True))
    tables = "\n".join(table(name, settings) for name in names)
    return f"""## Training: {DATA_SETS} data sets at once, and one at a time

n = 6 sequences of T = 8 unit tokens in R^10, logistic loss, step 0.1, float64. Ours is one call of
`train` with default settings for each line: exact gradients, about 60 records, all recorded
matrices kept. "First call" is that in a fresh process, tracing and compiling included, imports not;
nothing compiled is kept from one process to the next. The usual way trains one data set at a time
(PyTorch `nn.Linear`, autograd, the published updates) and records nothing, on one thread, because
more only slow down arrays so small; each run times {SAMPLE} data sets and is scaled to {DATA_SETS}.
Both sides ran in turn, {ROUNDS} times, in processes of their own, ours in a new one each time.

{machine()}; {versions("jax", "optax", "torch", "numpy")}

{tables}"""


if __name__ == "__main__":
    sides = {"ours": serve_ours, "usual": serve_usual, "difference": serve_difference}
    side, *words = sys.argv[1:] or [""]
    if side in sides:
        sides[side](EXPERIMENTS[" ".join(words)])
    else:
        print(section((" ".join(sys.argv[1:]),) if side else tuple(EXPERIMENTS)))
