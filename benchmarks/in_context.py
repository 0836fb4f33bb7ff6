"""A step of training in-context regression: ours against a plain PyTorch loop.

Run as ``python -m benchmarks.in_context``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from statistics import median

from benchmarks.machine import Worker, machine, seconds, seconds_of_steps, spread, versions

LENGTHS = (10, 100, 1000)
LONG = 100_000
BATCH, RATE = 128, 1e-3
ENTRIES = 6
GENERATORS = "generators\n"
NAMES = ("ours", "`jax.random`, threefry", "`jax.random`, rbg", "NumPy, SFC64", "PyTorch")
ROUNDS = 5
SECONDS = 0.2
"""Time that one measurement takes, about."""
WAYS = (("softmax", "tokens"), ("softmax", "projections"), ("linear", "moments"))
SHOWN = {
    ("softmax", "tokens"): "softmax, every token drawn",
    ("softmax", "projections"): "softmax, projections drawn",
    ("linear", "moments"): "linear, moments drawn",
}


def ours(attention: str, draw: str, length: float, steps: int) -> None:
    """Trains for some steps; nothing is measured but both ends."""
    from attractor.prompts.regression import RegressionTask, train_in_context

    train_in_context(
        _task(RegressionTask),
        length=length,
        attention=attention,
        draw=draw,
        steps=steps,
        learning_rate=RATE,
        batch=BATCH,
        held_out=BATCH,
        record=[steps],
    )


@cache
def _task(kind: type):
    return kind.official(as_run=True)


@cache
def usual(attention: str, length: int):
    """A step of the published configuration: four linear layers, autograd, fresh prompts."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    d, n = 5, 6
    places = torch.arange(d)
    factor = torch.linalg.cholesky(0.5 ** (places[:, None] - places).abs())
    twice = (factor @ factor).T
    queries, keys, values = (nn.Linear(n, n, bias=False) for _ in range(3))
    output = nn.Linear(n, 1, bias=False)
    layers = nn.ModuleList([queries, keys, values, output])
    optimizer = torch.optim.SGD(layers.parameters(), lr=RATE)
    loss_of = nn.MSELoss()

    def step() -> None:
        weights = torch.randn(BATCH, d, 1) / math.sqrt(d)
        inputs = torch.randn(BATCH, length, d) @ twice
        labels = inputs @ weights + math.sqrt(0.1) * torch.randn(BATCH, length, 1)
        tokens = torch.cat([inputs, labels], -1)
        query = torch.randn(BATCH, 1, d)
        target = (query @ weights + math.sqrt(0.1) * torch.randn(BATCH, 1, 1)).flatten()
        query = torch.cat([query, torch.zeros(BATCH, 1, 1)], -1)
        scores = queries(query) @ keys(tokens).transpose(1, 2) / math.sqrt(n)
        attended = scores.softmax(-1) if attention == "softmax" else scores / length
        loss = loss_of(output(attended @ values(tokens)).flatten(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def generators() -> list[Callable[[], object]]:
    """Ways to draw the normal numbers of a step with the most tokens, in single precision.

    In the order of ``NAMES``, but for PyTorch.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from attractor.prompts.regression.batches import token_normals
    from attractor.support.precision import double_precision

    numbers = np.random.Generator(np.random.SFC64(0))
    kept = np.empty((BATCH, ENTRIES, LENGTHS[-1]), np.float32)

    def of_jax(kind: str) -> Callable[[], object]:
        key = jax.random.key(0, impl=kind)
        draw = jax.jit(lambda key: jax.random.normal(key, kept.shape, jnp.float32))
        return lambda: jax.block_until_ready(draw(key))

    def of_ours() -> object:
        with double_precision():
            return jax.block_until_ready(ours(words, prompts))

    ours = jax.jit(lambda key, prompts: token_normals(key, prompts, ENTRIES // 2, LENGTHS[-1]))
    words, prompts = jnp.array([0, 1], jnp.uint32), jnp.arange(BATCH, dtype=jnp.uint32)
    return [
        of_ours,
        of_jax("threefry2x32"),
        of_jax("rbg"),
        lambda: numbers.standard_normal(dtype=np.float32, out=kept),
    ]


def _generator_times() -> list[float]:
    """Nanoseconds of a number, for each generator."""
    count = BATCH * ENTRIES * LENGTHS[-1]
    found = []
    for draw in generators():
        draw()
        found.append(min(seconds(draw) for _ in range(5)) * 1e9 / count)
    return found


def serve_ours() -> None:
    """Prints the milliseconds of a step for each line with attention, draw and length."""
    print(flush=True)
    steps: dict[str, int] = {}
    for line in sys.stdin:
        if line == GENERATORS:
            print(*_generator_times(), flush=True)
            continue
        attention, draw, length = line.split()

        def train(count: int, attention=attention, draw=draw, length=length) -> None:
            ours(attention, draw, float(length), count)

        if line not in steps:
            train(1)
            taken = max(seconds_of_steps(train, 50), 1e-4) / 49
            steps[line] = 1 + math.ceil(SECONDS / taken)
        print(1e3 * seconds_of_steps(train, steps[line]) / (steps[line] - 1), flush=True)


def serve_usual() -> None:
    """Prints the milliseconds of a step for each line with attention and length."""
    import torch

    torch.set_num_threads(1)
    print(flush=True)
    for line in sys.stdin:
        if line == GENERATORS:
            shape = (BATCH, ENTRIES, LENGTHS[-1])
            best = min(seconds(lambda shape=shape: torch.randn(shape)) for _ in range(6))
            print(best * 1e9 / math.prod(shape), flush=True)
            continue
        attention, length = line.split()
        step = usual(attention, int(length))
        for _ in range(3):
            step()
        count = max(5, math.ceil(SECONDS / seconds(step)))

        def several(count: int = count, step=step) -> None:
            for _ in range(count):
                step()

        print(1e3 * seconds(several) / count, flush=True)


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    sides = [
        Worker("benchmarks.in_context", name, single_thread=True) for name in ("ours", "usual")
    ]
    ours_, usual_ = sides
    cases = [(*way, length) for way in WAYS for length in LENGTHS]
    taken: dict[tuple, tuple[list[float], list[float]]] = {case: ([], []) for case in cases}
    further = {("linear", "moments", LONG): [], ("softmax", "tokens", math.inf): []}
    drawn: list[list[float]] = []
    for case in [*cases, *further]:
        ours_.run(" ".join(map(str, case)))  # compiles
    for _ in range(ROUNDS):
        for (attention, draw, length), (fast, slow) in taken.items():
            fast += ours_.run(f"{attention} {draw} {length}")
            slow += usual_.run(f"{attention} {length}")
        for case, found in further.items():
            found += ours_.run(" ".join(map(str, case)))
        drawn.append(ours_.run(GENERATORS.strip()) + usual_.run(GENERATORS.strip()))
    for side in sides:
        side.close()
    rows = [
        f"| {SHOWN[attention, draw]} | {length} | {spread(fast)} | {spread(slow)} | "
        f"{_gain(fast, slow)} |"
        for (attention, draw, length), (fast, slow) in taken.items()
    ]
    long, infinite = further.values()
    table = "\n".join(rows)
    drawing = "\n".join(
        f"| {name} | {spread(list(times))} |"
        for name, times in zip(NAMES, zip(*drawn, strict=True), strict=True)
    )
    return f"""## In-context regression: a step of training

The published configuration: five inputs and a label, one head of four linear layers, {BATCH} fresh
prompts a step, gradient descent. The usual way is a plain PyTorch loop with automatic
differentiation. Ours draws prompts of the same law and takes exact gradients, in single precision
within a prompt as PyTorch does; drawing projections, or second moments for linear attention,
changes no law. Compiled before; one core and one thread each, in turn, {ROUNDS} times.

{machine()}; {versions("jax", "torch", "numpy")}

| attention, what is drawn | tokens | ours, ms | PyTorch, ms | ratio |
| --- | --- | --- | --- | --- |
{table}

Linear attention on {LONG:,} tokens: {spread(long)} ms a step. Prompts of infinite length:
{spread(infinite)} ms a step.

| standard normal numbers, {BATCH} x {ENTRIES} x {LENGTHS[-1]} | nanoseconds each |
| --- | --- |
{drawing}
"""


def _gain(fast: list[float], slow: list[float]) -> str:
    ratios = [usual / ours for ours, usual in zip(fast, slow, strict=True)]
    shown = [f"{ratio:.3g}" for ratio in (median(ratios), min(ratios), max(ratios))]
    return f"**{shown[0]}x** ({shown[1]} to {shown[2]})"


if __name__ == "__main__":
    if sys.argv[1:] == ["ours"]:
        serve_ours()
    elif sys.argv[1:] == ["usual"]:
        serve_usual()
    else:
        print(section())
