"""Margin problems of tens of thousands of constraints: time, memory and certified gap.

Every case runs in a fresh process, from arrays of keys and queries to the certified solution; its
memory is the most that the whole process held. Run as ``python -m benchmarks.large_problems``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np

from benchmarks.machine import ROOT, machine, peak_memory, versions

TOLERANCE = 1e-6


class Case(NamedTuple):
    """A data set of unit Gaussian keys and queries, and the norm to solve in."""

    norm: str = "frobenius"
    sequences: int = 512
    length: int = 64
    dimension: int = 768
    query_rank: int = 0  # of the matrix of queries; 0: full
    apart: float = 0.0  # distance of every fourth token from the one before it; 0: random
    planted_rank: int = 0  # of a matrix whose favorite tokens are selected; 0: a random selection


class Measured(NamedTuple):
    """What a process reports."""

    constraints: int
    seconds: float
    gigabytes: float
    gap: float
    support: int


CASES = {
    "random tokens": Case(),
    "queries of rank 64, near-duplicate tokens": Case(query_rank=64, apart=1e-3),
    "planted selection, 64 x 64 head": Case(norm="nuclear", dimension=64, planted_rank=3),
}
SEQUENCES = (64, 128, 256, 512)
DIMENSIONS = (192, 384, 768)


def data(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, queries, and the position of the selected token of each sequence."""
    rng = np.random.default_rng(0)
    n, length, d = case.sequences, case.length, case.dimension
    keys, queries = rng.normal(size=(n, length, d)), rng.normal(size=(n, d))
    if case.query_rank:
        queries = rng.normal(size=(n, case.query_rank)) @ rng.normal(size=(case.query_rank, d))
    if case.apart:
        step = rng.normal(size=(n, length // 4, d))
        keys[:, 1::4] = keys[:, ::4] + case.apart * step
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=-1, keepdims=True)
    if case.planted_rank:
        W = rng.normal(size=(d, case.planted_rank)) @ rng.normal(size=(case.planted_rank, d))
        return keys, queries, np.einsum("ntd,nd->nt", keys, queries @ W.T).argmax(-1)
    return keys, queries, rng.integers(0, length, n)


def run(case: Case) -> Measured:
    """Solves one case in this process."""
    import attractor as at
    from attractor.geometry import get_geometry

    keys, queries, index = data(case)
    start = time.perf_counter()
    tokens = at.Tokens(keys, queries)
    problem = at.MarginProblem.from_selection(tokens, at.Selection.from_index(tokens, index))
    solution = at.solve(problem, get_geometry(case.norm), tolerance=TOLERANCE)
    seconds = time.perf_counter() - start
    return Measured(
        len(problem.bounds),
        seconds,
        peak_memory(),
        float(solution.gap),
        int(solution.support.sum()),
    )


def measure(case: Case) -> Measured:
    """The same in a process of its own, with the threads that the user would have."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.large_problems", json.dumps(case._asdict())],
        cwd=ROOT,
        env=environment,
        text=True,
        capture_output=True,
        check=True,
    )
    constraints, seconds, gigabytes, gap, support = map(float, done.stdout.split())
    return Measured(int(constraints), seconds, gigabytes, gap, int(support))


def growth() -> list[tuple[int, Measured]]:
    """Dimension and measurements of Frobenius problems, as sequences and dimension grow."""
    cases = [Case(sequences=n) for n in SEQUENCES]
    cases += [Case(dimension=d) for d in DIMENSIONS if d != cases[-1].dimension]
    return [(case.dimension, measure(case)) for case in cases]


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    found = {name: (case, measure(case)) for name, case in CASES.items()}
    rows = [
        f"| {name} | {case.norm} | {m.constraints:,} | {case.dimension} x {case.dimension} | "
        f"**{m.seconds:.1f}** | {m.gigabytes:.2f} | {m.gap:.1e} | {m.support:,} |"
        for name, (case, m) in found.items()
    ]
    return f"""## Large margin problems

512 sequences of 64 unit Gaussian tokens; "near-duplicate" puts every fourth token at a distance
of 0.001 from the one before it; "planted" selects the favorite tokens of a random matrix of rank 3.
Seconds are for `Tokens`, `from_selection` and `solve` with `tolerance={TOLERANCE:g}`, certificate
on all constraints included; memory is the most the whole process held, keys and imports included.
Each case ran once, in a process of its own.

{machine()}; {versions("numpy", "scipy")}

| tokens | norm | constraints | matrix | seconds | memory, GB | certified gap | support |
| --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*run(Case(**json.loads(sys.argv[1]))))
    else:
        print(section())
