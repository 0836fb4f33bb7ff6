"""How long the certified margin problems of heads take, and how far they close.

Heads of random weights on anisotropic hidden states, or those of a file of captured heads, with
as many queries as make about the rows asked for. Run as ``python -m benchmarks.head_margins``,
with a file of captured heads as its argument or none.
"""

from __future__ import annotations

import dataclasses
import sys
import time

import numpy as np

from attractor.heads import Captured, CapturedLayer, load_captured
from attractor.heads.audit.margin_solution import NORMS, problem_of, solved
from attractor.heads.captured.rows import trained_matrix
from attractor.support.blas import single_blas_thread

ROWS, HEADS, TOKENS, WIDTHS = (744, 3100, 6200), 5, 32, (32, 64)
TOLERANCE = 1e-6


def random_layer(width: int, queries: int, heads: int) -> CapturedLayer:
    """Heads of random weights that see tokens with a spectrum that decays."""
    random = np.random.default_rng(width)
    hidden = 3 * width
    states = random.standard_normal((queries, TOKENS, hidden)) * np.geomspace(3, 0.1, hidden)
    K, Q = random.standard_normal((2, heads, width, hidden)) / np.sqrt(hidden)
    keys = np.einsum("qth,nwh->qntw", states, K)
    asked = states[np.arange(queries), random.integers(TOKENS, size=queries)]
    return Captured.from_arrays(keys, np.einsum("qh,nwh->qnw", asked, Q)).layer(0)


def layers(file: str | None) -> list[tuple[str, CapturedLayer]]:
    """The layers to take heads from, with a name each."""
    if file is not None:
        captured = load_captured(file)
        return [(f"{file}, layer {number}", layer) for number, layer in captured]
    most = max(ROWS) // (TOKENS - 1)
    return [(f"random, width {width}", random_layer(width, most, HEADS)) for width in WIDTHS]


def main() -> None:
    """Prints the table."""
    print("| heads | rows | norm | seconds | largest gap | closed |\n" + "| --- " * 6 + "|")
    for name, layer in layers(sys.argv[1] if len(sys.argv) > 1 else None):
        tokens = float(layer.allowed.sum(-1).mean())
        for rows in ROWS:
            count = round(rows / (tokens - 1))
            if count > len(layer.queries):
                continue
            arrays = ("queries", "keys", "allowed", "attention")
            few = {array: getattr(layer, array)[:count] for array in arrays}
            part = dataclasses.replace(layer, **few, values=None)
            for norm in NORMS:
                seconds, gaps, sizes = [], [], []
                for head in range(min(HEADS, layer.heads)):
                    seen, W = trained_matrix(part, head)
                    problem = problem_of(seen, W)
                    start = time.perf_counter()
                    with single_blas_thread():
                        gaps.append(float(solved(problem, W, norm, TOLERANCE).gap))
                    seconds.append(time.perf_counter() - start)
                    sizes.append(len(problem.bounds))
                low, middle, high = np.quantile(seconds, [0, 0.5, 1])
                closed = sum(gap <= TOLERANCE for gap in gaps)
                print(
                    f"| {name} | {np.median(sizes):,.0f} | {norm} | {middle:.2f} ({low:.2f} to "
                    f"{high:.2f}) | {max(gaps):.1e} | {closed} of {len(gaps)} |",
                    flush=True,
                )


if __name__ == "__main__":
    sys.exit(main())
