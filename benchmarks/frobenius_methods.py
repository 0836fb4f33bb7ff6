"""Methods for Frobenius margin problems: ``python -m benchmarks.frobenius_methods``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.machine import Worker, machine, spread, versions
from benchmarks.problems import unit_gaussian

INSTANCES, SEQUENCES, LENGTH, DIMENSION = 1000, 6, 8, 10
RUNS = 5
METHODS = {
    "block pivoting, batched (ours, first method)": "pivoting",
    "daqp on the Cholesky factor of G, Python loop": "daqp_gram",
    "daqp on the constraints in full, Python loop": "daqp_full",
    "SciPy nnls on the least-distance form, Python loop": "nnls",
}


def serve_methods() -> None:
    """Times each method on problems built and scaled beforehand; prints seconds and worst gap."""
    import attractor as at
    from attractor.margin.batching.scaling import ScaledConstraints
    from attractor.margin.certificates.certificate import certify_scaled
    from attractor.support.blas import single_blas_thread

    data = unit_gaussian(INSTANCES, SEQUENCES, LENGTH, DIMENSION)
    problems = at.MarginProblem.from_selection(*data)
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
            gap = certify_scaled(scaled, W, x, at.Frobenius()).gap
            found += [seconds, float(gap.max())]
        print(*found, flush=True)


def by_pivoting(scaled) -> tuple[np.ndarray, np.ndarray]:
    """The batched method of the library, in blocks as small as it uses."""
    import attractor as at
    from attractor.margin.frobenius.active_sets import solve_by_block_pivoting
    from attractor.margin.methods import Task

    W = np.full((INSTANCES, DIMENSION, DIMENSION), np.nan)
    task = Task(scaled, at.Frobenius(), 1e-9, W, np.zeros_like(scaled.bounds))
    found = [
        solve_by_block_pivoting(task.choose(np.s_[i : i + 64])) for i in range(0, INSTANCES, 64)
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


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    worker = Worker("benchmarks.frobenius_methods", "methods", single_thread=True)
    runs = np.array([worker.run() for _ in range(RUNS)])
    worker.close()
    table = [
        f"| {name} | {spread(list(runs[:, 2 * k]))} | {runs[:, 2 * k + 1].max():.1e} |"
        for k, name in enumerate(METHODS)
    ]
    return f"""## Methods for {INSTANCES} Frobenius problems

n = {SEQUENCES} sequences of T = {LENGTH} unit Gaussian tokens in R^{DIMENSION}. Methods alone, on
constraints built beforehand and without certificates; one core, one thread. The library uses the
first on a whole batch and turns to the last where its certificate is not tight.

{machine()}; {versions("numpy", "scipy", "daqp")}

| method | all {INSTANCES}, s | worst gap |
| --- | --- | --- |
{chr(10).join(table)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve_methods()
    else:
        print(section())
