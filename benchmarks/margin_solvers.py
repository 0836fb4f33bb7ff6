"""A thousand Frobenius margin problems: all at once against one at a time through cvxpy.

The usual way is that of the papers' code: for each data set a cvxpy problem over the full matrix,
one scalar constraint object for every pair of tokens, and the solver that cvxpy picks. Run as
``python -m benchmarks.margin_solvers``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.machine import Worker, machine, spread, versions

INSTANCES, SEQUENCES, LENGTH, DIMENSION = 1000, 6, 8, 10
SAMPLE = 20  # problems the usual way is timed on in each run
RUNS = 5
METHODS = {
    "block pivoting, batched (ours, first method)": "pivoting",
    "daqp on the Cholesky factor of G, Python loop": "daqp_gram",
    "daqp on the constraints in full, Python loop": "daqp_full",
    "SciPy nnls on the least-distance form, Python loop": "nnls",
}


def data():
    """Unit Gaussian tokens, and the tokens that score highest under a random head."""
    import attractor as at

    rng = np.random.default_rng(0)
    keys = rng.normal(size=(INSTANCES, SEQUENCES, LENGTH, DIMENSION))
    queries = rng.normal(size=(INSTANCES, SEQUENCES, DIMENSION))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=-1, keepdims=True)
    head = rng.normal(size=(INSTANCES, DIMENSION))
    labels = rng.choice([-1.0, 1.0], size=(INSTANCES, SEQUENCES))
    scores = labels[..., None] * np.einsum("intd,id->int", keys, head)
    tokens = at.Tokens(keys, queries, labels)
    return tokens, at.Selection.from_index(tokens, scores.argmax(-1))


def serve_ours() -> None:
    """Builds, solves and certifies every problem; prints seconds and the worst gap."""
    import attractor as at

    tokens, selection = data()

    def once() -> tuple[float, float]:
        start = time.perf_counter()
        solution = at.solve(at.MarginProblem.from_selection(tokens, selection))
        return time.perf_counter() - start, float(solution.gap.max())

    once()
    print(0.0, flush=True)
    for _ in sys.stdin:
        print(*once(), flush=True)


def serve_usual() -> None:
    """Solves a sample by cvxpy; prints seconds scaled to all, and the sample's worst gap."""
    import cvxpy

    import attractor as at
    from attractor.margin.certificate import certify

    tokens, selection = data()
    problems = at.MarginProblem.from_selection(tokens, selection)

    def one(i: int) -> tuple[np.ndarray, np.ndarray]:
        keys, queries = tokens.keys[i], tokens.queries[i, :, 0]
        W = cvxpy.Variable((DIMENSION, DIMENSION))
        constraints = []
        for n in range(SEQUENCES):
            chosen = selection.index[i, n]
            for t in range(LENGTH):
                if t != chosen:
                    constraints.append((keys[n, chosen] - keys[n, t]) @ W @ queries[n] >= 1)
        cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(W, "fro")), constraints).solve()
        return W.value, np.array([float(c.dual_value) for c in constraints])

    one(0)
    print(0.0, flush=True)
    for turn, _ in enumerate(sys.stdin):
        chosen = [(turn * SAMPLE + k) % INSTANCES for k in range(SAMPLE)]
        start = time.perf_counter()
        answers = [one(i) for i in chosen]
        seconds = (time.perf_counter() - start) * INSTANCES / SAMPLE
        W, multipliers = (np.stack(arrays) for arrays in zip(*answers, strict=True))
        gaps = certify(problems[chosen], W, multipliers, at.Frobenius()).gap
        print(seconds, float(gaps.max()), flush=True)


def serve_methods() -> None:
    """Times each method on problems built and scaled beforehand; prints seconds and worst gap."""
    import attractor as at
    from attractor.margin.certificate import certify_scaled
    from attractor.margin.scaling import ScaledConstraints
    from attractor.precision import single_blas_thread

    problems = at.MarginProblem.from_selection(*data())
    scaled = ScaledConstraints.of(problems)
    methods = [globals()[f"by_{name}"] for name in METHODS.values()]
    print(0.0, flush=True)
    for _ in sys.stdin:
        found = []
        for method in methods:
            with single_blas_thread():
                start = time.perf_counter()
                W, x = method(scaled)
                seconds = time.perf_counter() - start
            matrices, multipliers = scaled.restore_matrix(W), scaled.restore_multipliers(x)
            gap = certify_scaled(scaled, matrices, multipliers, at.Frobenius()).gap
            found += [seconds, float(gap.max())]
        print(*found, flush=True)


def by_pivoting(scaled) -> tuple[np.ndarray, np.ndarray]:
    """The batched method of the library, in blocks as small as it uses."""
    from attractor.margin.block_pivoting import solve_by_block_pivoting

    found = [
        solve_by_block_pivoting(scaled.choose(np.s_[i : i + 64]), scaled.bounds[i : i + 64])
        for i in range(0, INSTANCES, 64)
    ]
    W, x = zip(*found, strict=True)
    return np.concatenate(W), np.concatenate(x)


def by_daqp_gram(scaled) -> tuple[np.ndarray, np.ndarray]:
    """The dual of each problem, as least distance in the coordinates of a Cholesky factor."""

    def one(left: np.ndarray, right: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        gram = (left @ left.T) * (right @ right.T)
        return _daqp(np.linalg.cholesky(gram), bounds)

    return _loop(scaled, one)


def by_daqp_full(scaled) -> tuple[np.ndarray, np.ndarray]:
    """Least distance in the full space of matrices."""

    def one(left: np.ndarray, right: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        return _daqp((left[:, :, None] * right[:, None, :]).reshape(len(left), -1), bounds)

    return _loop(scaled, one)


def by_nnls(scaled) -> tuple[np.ndarray, np.ndarray]:
    """Non-negative least squares on the triangular factor, as the library's second method."""
    from scipy.optimize import nnls

    def one(left: np.ndarray, right: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        rows = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
        system = np.vstack([np.linalg.qr(rows.T, mode="r"), bounds])
        target = np.zeros(len(system))
        target[-1] = 1.0
        u = nnls(system, target)[0]
        return u / (1 - bounds @ u)

    return _loop(scaled, one)


def _daqp(rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Multipliers of ``min ||u||^2 / 2`` over ``rows u >= bounds``."""
    import daqp

    size = rows.shape[1]
    above, senses = np.full(len(rows), 1e30), np.zeros(len(rows), dtype=np.int32)
    _, _, _, info = daqp.solve(np.eye(size), np.zeros(size), rows, above, bounds, senses)
    return np.abs(info["lam"])


def _loop(scaled, one: Callable[..., np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    x = np.stack([one(*row) for row in zip(scaled.left, scaled.right, scaled.bounds, strict=True)])
    W = np.swapaxes(scaled.left, -1, -2) @ (x[..., None] * scaled.right)
    return W, x / np.linalg.norm(W, axis=(-2, -1))[:, None]


def compare(single_thread: bool) -> tuple[np.ndarray, np.ndarray]:
    """(seconds, worst gap) of each run of both sides, run in turn."""
    module = "benchmarks.margin_solvers"
    ours = Worker(module, "ours", single_thread=single_thread)
    usual = Worker(module, "usual", single_thread=single_thread)
    pairs = [(ours.run(), usual.run()) for _ in range(RUNS)]
    ours.close()
    usual.close()
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    lines = []
    for threads, single in (("one core, one thread", True), ("default threads", False)):
        ours, usual = compare(single)
        ratios = usual[:, 0] / ours[:, 0]
        lines.append(
            f"| {threads} | {spread(list(ours[:, 0]))} | {ours[:, 1].max():.1e} | "
            f"{spread(list(usual[:, 0]))} | {usual[:, 1].max():.1e} | "
            f"**{median(ratios):.0f}x** ({min(ratios):.0f} to {max(ratios):.0f}) |"
        )
    worker = Worker("benchmarks.margin_solvers", "methods", single_thread=True)
    runs = np.array([worker.run() for _ in range(RUNS)])
    worker.close()
    table = [
        f"| {name} | {spread(list(runs[:, 2 * k]))} | {runs[:, 2 * k + 1].max():.1e} |"
        for k, name in enumerate(METHODS)
    ]
    return f"""## Margin problems: {INSTANCES} Frobenius solves

n = {SEQUENCES} sequences of T = {LENGTH} unit Gaussian tokens in R^{DIMENSION}, the tokens of
highest score selected: {SEQUENCES * (LENGTH - 1)} constraints each. Ours is `from_selection` and
`solve`, certificates included. The usual way is cvxpy as the papers' code calls it: a full
{DIMENSION} x {DIMENSION} variable, one scalar constraint object for every pair of tokens, default
solver; each run times {SAMPLE} problems, modeling included, and is scaled to {INSTANCES}. Both
sides ran in turn, {RUNS} times, in processes of their own; the gap is the certified one, worst of
all problems timed, evaluated by the same code for both.

{machine()}; {versions("numpy", "scipy", "cvxpy", "clarabel", "daqp")}

| threads | ours, s | our worst gap | usual way, s | its worst gap | ratio |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}

Methods alone, on constraints built beforehand and without certificates; one core, one thread. The
library uses the first on a whole batch and turns to the last where its certificate is not tight.

| method | all {INSTANCES}, s | worst gap |
| --- | --- | --- |
{chr(10).join(table)}
"""


if __name__ == "__main__":
    sides = {"ours": serve_ours, "usual": serve_usual, "methods": serve_methods}
    if len(sys.argv) > 1:
        sides[sys.argv[1]]()
    else:
        print(section())
