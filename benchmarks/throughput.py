"""How much of the machine's own matrix-product rate a training step reaches.

The step's matrix products are timed alone, batched over the same trials at the same shapes, and
one product of large matrices besides; the step's multiply-adds per second are held against both.
Run as ``python -m benchmarks.throughput``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.experiments import EXPERIMENTS, optimizer, random_data
from benchmarks.machine import Worker, machine, seconds, spread, versions

BLOCK = 25
SHAPES = {"the papers'": (6, 8, 10, 2000), "larger": (32, 64, 64, 100)}
RUNS = 5
LARGE = 1024
"""Rows and columns of the matrices that the machine's own rate is measured with."""

# What one step multiplies, in the letters b trials, n sequences, k queries, t tokens, d, e and m.
IN_ALL = {
    "scores": "bntd,bnkd->bnkt",
    "outputs": "bnkt,bntd->bnkd",
    "effects of tokens": "bntd,bnkd->bnkt",
    "adjoint, tokens": "bnkt,bntd->bnkd",
}
PRODUCTS = {
    "W": IN_ALL | {"W z": "bde,bnke->bnkd", "adjoint, queries": "bnkd,bnke->bde"},
    "KQ": IN_ALL
    | {
        "Q^T z": "bem,bnke->bnkm",
        "K (Q^T z)": "bdm,bnkm->bnkd",
        "adjoint, K": "bnkd,bnkm->bdm",
        "adjoint, Q^T z": "bnkd,bdm->bnkm",
        "adjoint, Q": "bnkm,bnke->bem",
    },
}
PARTS = {run.parameterization: run for run in EXPERIMENTS["local convergence"]}


def serve(shape: str, parameterization: str) -> None:
    """For each line read: seconds a step, a round of its products, and a large product take."""
    import jax

    n, length, d, steps = SHAPES[shape]
    products = list(PRODUCTS[parameterization].values())
    sizes = {"b": BLOCK, "n": n, "k": 1, "t": length, "d": d, "e": d, "m": d}
    with jax.enable_x64(True):
        step = _training(parameterization, n, length, d, steps)
        alone, large = _products(products, sizes, steps), _large_product()
        for call in (step, alone, large):
            call()
        print(multiply_adds(products, sizes), flush=True)
        for _ in sys.stdin:
            print(seconds(step) / steps, seconds(alone) / steps, seconds(large), flush=True)


def multiply_adds(products: list[str], sizes: dict[str, int]) -> int:
    """Multiply-adds of one round of products."""
    letters = [set(product.replace("->", "").replace(",", "")) for product in products]
    return int(sum(np.prod([sizes[letter] for letter in product]) for product in letters))


def _training(parameterization: str, n: int, length: int, d: int, steps: int) -> Callable[[], Any]:
    import attractor as at

    tokens, head = random_data(BLOCK, n, length, d)
    return lambda: at.train(
        tokens,
        head,
        optimizer(PARTS[parameterization]),
        steps=steps,
        parameterization=parameterization,
        record=[0],
        weights="last",
    )


def _products(products: list[str], sizes: dict[str, int], steps: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    operands = [
        [jnp.asarray(random.normal(size=[sizes[x] for x in part])) for part in left.split(",")]
        for left in (product.split("->")[0] for product in products)
    ]

    def one_round(_: Any, operands: list[list[Any]]) -> list[list[Any]]:
        moved = []
        for (a, b), product in zip(operands, products, strict=True):
            # The barrier and the touched entry keep the compiler from leaving the product out.
            result = jax.lax.optimization_barrier(jnp.einsum(product, a, b))
            moved.append([a.at[(0,) * a.ndim].add(result[(0,) * result.ndim] * 0), b])
        return moved

    run = jax.jit(lambda operands: jax.lax.fori_loop(0, steps, one_round, operands))
    return lambda: jax.block_until_ready(run(operands))


def _large_product() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(LARGE, LARGE)))
    run = jax.jit(lambda matrix: matrix @ matrix)
    return lambda: jax.block_until_ready(run(matrix))


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    lines = []
    for shape, (n, length, d, _) in SHAPES.items():
        for parameterization, part in PARTS.items():
            worker = Worker("benchmarks.throughput", shape, parameterization, single_thread=True)
            found = [worker.run() for _ in range(RUNS)]
            worker.close()
            work = worker.ready[0]
            step, alone, large = (
                [amount / times[side] / 1e9 for times in found]
                for side, amount in enumerate((work, work, LARGE**3))
            )
            of_alone, of_large = (
                [100 * a / b for a, b in zip(step, other, strict=True)] for other in (alone, large)
            )
            lines.append(
                f"| {part.name}, {shape}: n={n}, T={length}, d={d} | {work / BLOCK:,.0f} "
                f"| {spread(step)} | {spread(alone)} | {spread(large)} "
                f"| **{spread(of_alone, '{:.0f} %')}** | {spread(of_large, '{:.1f} %')} |"
            )
    return f"""## Throughput of a training step

Multiply-adds per second of normalized gradient descent on a block of {BLOCK} trials (`train`,
warm, all its overhead included), over those of the step's own matrix products alone, `jnp.einsum`
batched over the same trials at the same shapes in one compiled loop, and over those of one product
of {LARGE} x {LARGE} matrices. One core, float64, {RUNS} runs, all sides in turn.
What is not matrix product is the softmax and its exact derivative, the norm of the gradient, and
the checks for trials to freeze, all of them passes over small arrays. Alone, every product is
written to memory; in a step some are joined to what follows, so that a step can be the faster one.

{machine()}; {versions("jax", "numpy")}

| trained | multiply-adds per trial and step | step, 1e9/s | its products alone, 1e9/s | large \
product, 1e9/s | step over its products | step over large product |
| --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(*sys.argv[1:])
    else:
        print(section())
