"""How much of the machine's own matrix-product rate a training step reaches.

The step's matrix products are timed alone, batched over the same trials at the same shapes, and
the step's multiply-adds per second are held against theirs. Run as ``python -m
benchmarks.throughput``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.machine import Worker, machine, spread, versions

BLOCK = 25
SHAPES = {"the papers'": (6, 8, 10, 2000), "larger": (32, 64, 64, 100)}
RUNS = 5

# What one step multiplies, in the letters b trials, n sequences, k queries, t tokens, d and e.
PRODUCTS = {
    "W z": "bde,bnke->bnkd",
    "scores": "bntd,bnkd->bnkt",
    "outputs": "bnkt,bntd->bnkd",
    "adjoint, tokens": "bnkt,bntd->bnkd",
    "adjoint, queries": "bnkd,bnke->bde",
}


def serve(name: str) -> None:
    """For each line read: seconds a step, and seconds a round of its products alone."""
    import jax

    n, length, d, steps = SHAPES[name]
    with jax.enable_x64(True):
        step, products = _training(n, length, d, steps), _products(n, length, d, steps)
        step()
        products()
        print(float(multiply_adds(n, length, d)), flush=True)
        for _ in sys.stdin:
            print(_seconds(step) / steps, _seconds(products) / steps, flush=True)


def multiply_adds(n: int, length: int, d: int) -> int:
    """Multiply-adds of one step of one block."""
    sizes = {"b": BLOCK, "n": n, "k": 1, "t": length, "d": d, "e": d}
    letters = [set(product.replace("->", "").replace(",", "")) for product in PRODUCTS.values()]
    return int(sum(np.prod([sizes[letter] for letter in product]) for product in letters))


def _training(n: int, length: int, d: int, steps: int) -> Callable[[], Any]:
    import attractor as at

    random = np.random.default_rng(0)
    tokens = at.Tokens(
        random.normal(size=(BLOCK, n, length, d)) / np.sqrt(d),
        random.normal(size=(BLOCK, n, d)) / np.sqrt(d),
        np.where(random.random((BLOCK, n)) < 0.5, -1.0, 1.0),
    )
    head, optimizer = at.LinearHead(random.normal(size=d)), at.normalized_gradient_descent(0.1)
    return lambda: at.train(
        tokens, head, optimizer, steps=steps, initial=np.zeros((d, d)), record=[0], weights="last"
    )


def _products(n: int, length: int, d: int, steps: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    sizes = {"b": BLOCK, "n": n, "k": 1, "t": length, "d": d, "e": d}
    random = np.random.default_rng(0)
    operands = [
        [jnp.asarray(random.normal(size=[sizes[x] for x in part])) for part in left.split(",")]
        for left in (product.split("->")[0] for product in PRODUCTS.values())
    ]

    def one_round(_: Any, operands: list[list[Any]]) -> list[list[Any]]:
        moved = []
        for (a, b), product in zip(operands, PRODUCTS.values(), strict=True):
            # The barrier and the touched entry keep the compiler from leaving the product out.
            result = jax.lax.optimization_barrier(jnp.einsum(product, a, b))
            moved.append([a.at[(0,) * a.ndim].add(result[(0,) * result.ndim] * 0), b])
        return moved

    run = jax.jit(lambda operands: jax.lax.fori_loop(0, steps, one_round, operands))
    return lambda: jax.block_until_ready(run(operands))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    lines = []
    for name, (n, length, d, _) in SHAPES.items():
        worker = Worker("benchmarks.throughput", name, single_thread=True)
        seconds = [worker.run() for _ in range(RUNS)]
        worker.close()
        work = worker.ready[0]
        step, products = ([work / pair[side] / 1e9 for pair in seconds] for side in (0, 1))
        ratios = [100 * a / b for a, b in zip(step, products, strict=True)]
        lines.append(
            f"| {name}: n={n}, T={length}, d={d} | {work / BLOCK:,.0f} | {spread(step)} "
            f"| {spread(products)} | **{spread(ratios, '{:.0f} %')}** |"
        )
    return f"""## Throughput of a training step

Multiply-adds per second of normalized gradient descent on a block of {BLOCK} trials (`train`,
warm, all its overhead included), over those of the step's own matrix products alone: `jnp.einsum`
batched over the same trials at the same shapes, in one compiled loop. One core, float64,
{RUNS} runs, both sides in turn.
What is not matrix product is the softmax and its exact derivative, the norm of the gradient, and
the checks for trials to freeze, all of them passes over small arrays.

{machine()}; {versions("jax", "numpy")}

| shapes | multiply-adds per trial and step | step, 1e9/s | products alone, 1e9/s | ratio |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        print(section())
