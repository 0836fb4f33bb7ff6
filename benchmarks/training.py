"""Training of a hundred attention layers: all at once against one at a time.

The usual way is a Python loop: one data set at a time, PyTorch's nn.Linear, autograd and SGD with
the gradient divided by its norm, in double precision. Run as ``python -m benchmarks.training``.
"""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np

from benchmarks.machine import ROOT, Worker, machine, spread, versions

DATA_SETS, STEPS, LEARNING_RATE = 100, 2000, 0.1
SAMPLE = 4  # data sets the usual way is timed on in each run
RUNS = 5


def arrays() -> dict[str, np.ndarray]:
    """A hundred data sets of six sequences of eight unit tokens in ten dimensions."""
    stored = np.load(ROOT / "tests" / "data" / "unit_tokens_6_8_10.npz")
    return {name: stored[name][:DATA_SETS].astype(float) for name in stored.files}


def serve_ours() -> None:
    """Trains every data set once for each line read; says how long compiling took first."""
    import attractor as at

    data = arrays()
    tokens = at.Tokens(data["keys"], data["queries"], data["labels"])
    head, optimizer = at.LinearHead(data["v"]), at.normalized_gradient_descent(LEARNING_RATE)

    def once() -> float:
        start = time.perf_counter()
        at.train(tokens, head, optimizer, steps=STEPS)
        return time.perf_counter() - start

    print(once() - once(), flush=True)
    for _ in sys.stdin:
        print(once(), flush=True)


def serve_usual() -> None:
    """Trains a few data sets, one at a time, for each line read."""
    import torch

    data = {name: torch.tensor(array) for name, array in arrays().items()}

    def one(index: int) -> None:
        keys, queries = data["keys"][index], data["queries"][index]
        labels, v = data["labels"][index], data["v"][index]
        layer = torch.nn.Linear(queries.shape[-1], keys.shape[-1], bias=False, dtype=torch.float64)
        descent = torch.optim.SGD(layer.parameters(), lr=LEARNING_RATE)
        for _ in range(STEPS):
            descent.zero_grad()
            scores = (keys @ layer(queries)[..., None])[..., 0]
            outputs = (torch.softmax(scores, -1)[..., None] * keys).sum(-2)
            loss = torch.nn.functional.softplus(-labels * (outputs @ v)).mean()
            loss.backward()
            gradient = layer.weight.grad
            gradient /= gradient.norm() + 2.22e-16
            descent.step()

    one(0)
    print(0.0, flush=True)
    for turn, _ in enumerate(sys.stdin):
        start = time.perf_counter()
        for index in range(SAMPLE):
            one((turn * SAMPLE + index) % DATA_SETS)
        print((time.perf_counter() - start) * DATA_SETS / SAMPLE, flush=True)


def compare(single_thread: bool) -> tuple[list[float], list[float], float]:
    """Seconds of both sides, run in turn, and the seconds that compiling took."""
    ours = Worker("benchmarks.training", "ours", single_thread=single_thread)
    usual = Worker("benchmarks.training", "usual", single_thread=single_thread)
    pairs = [(ours.run()[0], usual.run()[0]) for _ in range(RUNS)]
    ours.close()
    usual.close()
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs], ours.ready[0]


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    lines = []
    for threads, single in (("one core, one thread", True), ("default threads", False)):
        ours, usual, compiling = compare(single)
        ratios = [b / a for a, b in zip(ours, usual, strict=True)]
        lines.append(
            f"| {threads} | {spread(ours)} | {spread(usual)} | **{median(ratios):.0f}x** "
            f"({min(ratios):.0f} to {max(ratios):.0f}) | {compiling:.2g} |"
        )
    return f"""## Training: {DATA_SETS} data sets, {STEPS} steps

Normalized gradient descent on W, step {LEARNING_RATE}, n = 6 sequences of T = 8 unit tokens in
R^10, float64, on the CPU. Ours is one call of `train` with default settings: exact gradients, about
60 records, all recorded matrices kept. The usual way trains one data set at a time (PyTorch
`nn.Linear`, autograd, SGD with the gradient divided by its norm plus 2.22e-16) and records
nothing; each run times {SAMPLE} data sets and is scaled to {DATA_SETS}. Both sides ran in turn,
{RUNS} times, in processes of their own.

{machine()}; {versions("jax", "optax", "torch", "numpy")}

| threads | ours, warm, s | usual way, s | ratio | our compilation, once, s |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    sides = {"ours": serve_ours, "usual": serve_usual}
    if len(sys.argv) > 1:
        sides[sys.argv[1]]()
    else:
        print(section())
