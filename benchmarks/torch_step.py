"""A step of our PyTorch optimizers against one of ``torch.optim.AdamW``, on a model's weights.

Run as ``python -m benchmarks.torch_step``.
"""

from __future__ import annotations

import sys
from math import prod
from statistics import median
from typing import Any

from benchmarks.machine import Worker, machine, seconds, spread, versions

ROUNDS = 9
WARM = 5
"""Steps before the first that is timed."""
WIDTH, BLOCKS, VOCABULARY, PLACES = 384, 5, 7_000, 512
"""Of a transformer whose blocks have a fused projection, and a hidden layer four times as wide."""
RATE = 1e-3
REFERENCE = "`torch.optim.AdamW(foreach=True)`"
MIRROR = "`MirrorDescent(p={})`"
EXPONENTS = ("1.1", "1.5", "1.75", "2", "3")
BOUNDS = {"1.1": 2.5, "2": 1.5, "3": 1.5}
"""The ratios that the library means to stay below."""


def shapes() -> list[tuple[int, ...]]:
    """Shapes of the weights of the transformer: about 60 tensors, 10 million numbers."""
    block = [(3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH)]
    vectors = [(3 * WIDTH,), (WIDTH,), (4 * WIDTH,), (WIDTH,)] + 4 * [(WIDTH,)]
    return [(VOCABULARY, WIDTH), (PLACES, WIDTH)] + BLOCKS * (block + vectors)


def optimizers() -> dict[str, Any]:
    """Optimizers by name, each on weights and gradients of its own; the reference comes first."""
    import torch

    from attractor.torch import MirrorDescent, SteepestDescent

    def weights() -> list[torch.nn.Parameter]:
        torch.manual_seed(0)
        found = [torch.nn.Parameter(0.05 * torch.randn(shape)) for shape in shapes()]
        for one in found:
            one.grad = torch.zeros_like(one)
        return found

    return {
        REFERENCE: torch.optim.AdamW(weights(), lr=RATE, foreach=True),
        "`torch.optim.SGD(foreach=True)`": torch.optim.SGD(weights(), lr=RATE, foreach=True),
        **{MIRROR.format(p): MirrorDescent(weights(), RATE, float(p), False) for p in EXPONENTS},
        "`MirrorDescent(p=1.1, momentum=0.9)`": MirrorDescent(weights(), RATE, 1.1, False, 0.9),
        "`MirrorDescent(p=1.1, normalize=True)`": MirrorDescent(weights(), RATE, 1.1, True),
        '`SteepestDescent(norm="l_inf")`': SteepestDescent(weights(), lr=RATE, norm="l_inf"),
    }


def serve() -> None:
    """Prints the milliseconds of a step of every optimizer for each line read."""
    import torch

    torch.set_num_threads(1)
    made = list(optimizers().values())

    def milliseconds() -> list[float]:
        found = []
        for optimizer in made:
            for group in optimizer.param_groups:
                for one in group["params"]:
                    one.grad.normal_(std=1e-3)
            found.append(1e3 * seconds(optimizer.step))
        return found

    for _ in range(WARM):
        milliseconds()
    print(flush=True)
    for _ in sys.stdin:
        print(*milliseconds(), flush=True)


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    worker = Worker("benchmarks.torch_step", "serve", single_thread=True)
    columns = list(zip(*(worker.run() for _ in range(ROUNDS)), strict=True))
    worker.close()
    lines = []
    for name, column in zip(_names(), columns, strict=True):
        ratios = [mine / other for mine, other in zip(column, columns[0], strict=True)]
        bound = next((BOUNDS[p] for p in BOUNDS if name == MIRROR.format(p)), None)
        lines.append(
            f"| {name} | {spread(list(column))} | {spread(ratios, '{:.2f}')} "
            f"| {f'{bound}, {_verdict(median(ratios) <= bound)}' if bound else ''} |"
        )
    count = sum(prod(shape) for shape in shapes())
    return f"""## Cost of a step in PyTorch

Milliseconds of one step on the weights of a transformer, {len(shapes())} tensors and {count:,}
numbers in single precision: every optimizer on weights of its own, gradients drawn anew for each
step, {WARM} steps before the first that counts. One core, one thread, {ROUNDS} rounds, all
optimizers in turn in each.

{machine()}; {versions("torch")}

| optimizer | ms a step | over AdamW | at most |
| --- | --- | --- | --- |
{chr(10).join(lines)}
"""


def _names() -> list[str]:
    return list(optimizers())


def _verdict(met: bool) -> str:
    return "met" if met else "**not met**"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve()
    else:
        print(section())
