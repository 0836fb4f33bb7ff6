"""Two published suites from data to figure: all data sets at once against one at a time.

Run as ``python -m benchmarks.paper_suites``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.experiments import DATA_SETS, EXPERIMENTS, Run, data, initial, optimizer
from benchmarks.machine import Worker, machine, seconds, spread, versions

SAMPLE = 2
"""Data sets that the usual way is timed on in each round."""
ROUNDS = 5
KERNELS = ("plain", "exact")
NORMS = {"local convergence": ("fro", "nuc")}
"""Norms that each run is held against; of mirror descent, the norm of its own exponent."""
FIGURES = {
    "local convergence": ("transformers-as-svms/local-convergence",),
    "mirror descent": (
        "mirror-descent/directional-divergence",
        "mirror-descent/divergence-table",
    ),
}
"""What the suites are drawn as."""
DRAWN_RUNS = {
    "local convergence": (
        Run("W", "W", 5000),
        Run("(K, Q)", "KQ", 5000),
        Run("(K, Q), penalized", "KQ", 5000),
    ),
    "mirror descent": EXPERIMENTS["mirror descent"],
}
"""What these figures train, which is more than the suite of training and solves alone."""

drawn = cache(data)
"""The data sets, drawn once on either side."""


def suite(name: str, kernel: str) -> list[np.ndarray]:
    """Trains, solves for the tokens reached, and measures the whole way against the solutions."""
    import attractor as at

    tokens, head = drawn()
    found = []
    for run in EXPERIMENTS[name]:
        trajectory = at.train(
            tokens,
            head,
            optimizer(run),
            steps=run.steps,
            parameterization=run.parameterization,
            initial=initial(run),
            kernel=kernel,
        )
        reached = at.attended_tokens(tokens, trajectory.W()[:, 0])
        problem = at.MarginProblem.from_selection(tokens, reached, ties="equal")
        path = trajectory.data["W"].values[:, 0]
        found += [_cosines(path, at.solve(problem, norm).W) for norm in _geometries(name, run)]
    return found


def _geometries(name: str, run: Run) -> list:
    import attractor as at

    return [at.Frobenius(), at.Nuclear()] if name in NORMS else [at.Lp(run.p)]


def _cosines(path: np.ndarray, solutions: np.ndarray) -> np.ndarray:
    solutions = solutions.reshape(-1, 1, *path.shape[2:])
    lengths = np.linalg.norm(path, axis=(-1, -2)) * np.linalg.norm(solutions, axis=(-1, -2))
    return (path * solutions).sum((-1, -2)) / lengths


def usual_solution(name: str, run: Run, index: int, W: np.ndarray, norm: str) -> np.ndarray:
    """Solves for the tokens that one trained matrix attends to, as the published code does."""
    import cvxpy

    tokens = drawn()[0]
    keys, queries = tokens.keys[index], tokens.queries[index, :, 0]
    unknown = cvxpy.Variable(W.shape)
    constraints = []
    for x, z in zip(keys, queries, strict=True):
        best = int((x @ W @ z).argmax())
        for t in range(len(x)):
            if t != best:
                constraints.append((x[best] - x[t]) @ unknown @ z >= 1)
    size = cvxpy.norm(unknown, norm) if name in NORMS else cvxpy.pnorm(unknown, run.p)
    cvxpy.Problem(cvxpy.Minimize(size), constraints).solve()
    return np.asarray(unknown.value)


def serve_ours(name: str, kernel: str) -> None:
    """Prints the seconds of a later call, everything being compiled, for each line read."""
    suite(name, kernel)
    print(flush=True)
    for _ in sys.stdin:
        print(seconds(partial(suite, name, kernel)), flush=True)


def serve_usual(name: str) -> None:
    """Does a few data sets for each line read; prints the seconds that all would take.

    The line says which runs: those of the suite, or those of its figures.
    """
    import torch

    from benchmarks.one_at_a_time import Trainer

    torch.set_num_threads(1)
    trainers = {
        what: [(run, Trainer(run)) for run in runs[name]]
        for what, runs in (("suite", EXPERIMENTS), ("figures", DRAWN_RUNS))
    }

    def several(what: str, first: int) -> None:
        for run, trainer in trainers[what]:
            for index in range(first, first + SAMPLE):
                W = trainer(index)
                for norm in NORMS.get(name, ("",)):
                    usual_solution(name, run, index, W, norm)

    for _, trainer in trainers["suite"]:
        trainer(0, steps=10)
    print(flush=True)
    for turn, what in enumerate(sys.stdin):
        taken = seconds(partial(several, what.strip(), turn * SAMPLE))
        print(taken * DATA_SETS / SAMPLE, flush=True)


def door_to_door(name: str) -> float:
    """Seconds of the command that draws the suite, started anew with nothing compiled."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(Path(folder) / "cache")}
        command = [sys.executable, "-m", "attractor", "figures", *FIGURES[name], "--size", "paper"]
        command += ["--out", str(Path(folder) / "figures"), "--quiet"]
        return seconds(partial(subprocess.run, command, env=environment, check=True))


def rows(name: str) -> list[str]:
    """The lines of one suite: both kernels after compilation, and the whole command."""
    start = partial(Worker, "benchmarks.paper_suites", single_thread=False)
    usual = start("usual", name)
    ours = {kernel: start("ours", name, kernel) for kernel in KERNELS}
    taken: dict[str, list[float]] = {what: [] for what in (*KERNELS, "drawn", "suite", "figures")}
    for _ in range(ROUNDS):
        for kernel, worker in ours.items():
            taken[kernel] += worker.run()
        taken["suite"] += usual.run("suite")
        taken["drawn"].append(door_to_door(name))
        taken["figures"] += usual.run("figures")
    for worker in (usual, *ours.values()):
        worker.close()
    words = {
        "plain": "training and solves, plain kernel",
        "exact": "training and solves, exact kernel",
        "drawn": "door to door: start, compile, train, solve, draw",
    }
    lines = []
    for what, text in words.items():
        slow = taken["figures" if what == "drawn" else "suite"]
        ratios = [theirs / ours for theirs, ours in zip(slow, taken[what], strict=True)]
        lines.append(
            f"| {name} | {text} | {spread(taken[what])} | {spread(slow)} "
            f"| **{median(ratios):.0f}x** ({min(ratios):.0f} to {max(ratios):.0f}) |"
        )
    return lines


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    lines = [line for name in EXPERIMENTS for line in rows(name)]
    return f"""## Published suites: training, solves and figures

{DATA_SETS} data sets of n = 6 sequences of T = 8 unit tokens in R^10. Local convergence: normalized
gradient descent on W and on K and Q, 2,000 steps, each held against the Frobenius and the nuclear
solution for the tokens it reaches. Mirror descent: p = 1.75, 2 and 3 for 1,500, 2,000 and 20,000
steps, each against the l_p solution. The usual way trains one data set at a time (PyTorch, plain
softmax gradients, one thread) and solves by cvxpy with one constraint a pair of tokens; each round
times {SAMPLE} data sets and is scaled to {DATA_SETS}, and neither imports nor drawing are counted
on its side. The plain kernel takes gradients as the usual way does; the exact one is the default.
Door to door is the command `attractor figures` at size paper in a new process with an empty
cache of compiled programs. The figure of local convergence trains W, K and Q, and K and Q with a
penalty for 5,000 steps, and so does the usual way beside it; the figures of mirror descent train
the suite once for both. They solve for the tokens of every recorded step, the usual way for those
at the end alone. Both sides ran in turn, {ROUNDS} times, default threads.

{machine()}; {versions("jax", "torch", "cvxpy", "clarabel", "scs", "numpy")}

| suite | ours | ours, s | usual way, s | ratio |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    sides = {"ours": serve_ours, "usual": serve_usual}
    side, *words = sys.argv[1:] or [""]
    if side in sides:
        sides[side](*words)
    else:
        print(section())
