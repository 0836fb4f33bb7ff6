"""Errors of finite prompts, exact and sampled: ``python -m benchmarks.prompt_error``."""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.machine import Worker, machine, spread, versions

DIMENSION, QUERIES, LENGTHS = 4, 36, (64, 1024)
PROMPTS = 400
RUNS = 5


def serve_errors() -> None:
    """Times both; prints seconds of each and the relative standard error of the sample."""
    from attractor.prompts.finite_length import finite_length_error, monte_carlo_error
    from attractor.prompts.head import AttentionHead
    from attractor.prompts.measures.gaussian import Gaussian

    rng = np.random.default_rng(0)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(DIMENSION), np.arange(DIMENSION)))
    U, V = rng.standard_normal((2, DIMENSION, DIMENSION))
    U *= 0.22 / np.linalg.norm(U, 2)
    queries = rng.standard_normal((QUERIES, DIMENSION))
    tokens, head = Gaussian(np.zeros(DIMENSION), covariance), AttentionHead(U, V)
    monte_carlo_error(tokens, head, queries, 64, prompts=2, seed=0)  # compiles
    print(0.0, flush=True)
    for seed, _ in enumerate(sys.stdin):
        found = []
        for length in LENGTHS:
            start = time.perf_counter()
            exact = finite_length_error(covariance, U, V, queries, length)
            middle = time.perf_counter()
            sample = monte_carlo_error(tokens, head, queries, length, prompts=PROMPTS, seed=seed)
            end = time.perf_counter()
            relative = sample.standard_error.output / exact.output.mean()
            away = (sample.average.output - exact.output.mean()) / sample.standard_error.output
            found += [middle - start, end - middle, float(relative), float(away)]
        print(*found, flush=True)


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    worker = Worker("benchmarks.prompt_error", "errors", single_thread=True)
    runs = np.array([worker.run() for _ in range(RUNS)])
    worker.close()
    rows = []
    for k, length in enumerate(LENGTHS):
        exact, sampled, relative, away = runs[:, 4 * k : 4 * k + 4].T
        rows.append(
            f"| {length} | {spread(list(exact))} | {spread(list(sampled))} | "
            f"{100 * np.median(relative):.2g} % | {np.abs(away).max():.2g} | "
            f"{np.median(sampled * (relative / 0.01) ** 2 / exact):.3g} |"
        )
    return f"""## Errors of finite prompts of Gaussian tokens

The expected squared errors of the output and of both gradients, d = {DIMENSION}, for {QUERIES}
queries: by one-dimensional integrals, with a relative error below 1e-9, and over {PROMPTS} sampled
prompts. Standard errors are of the output averaged over queries, between prompts. The last column
is the ratio of times if as many prompts are sampled as a standard error of 1 % takes. One core, one
thread.

{machine()}; {versions("numpy", "scipy", "jax")}

| tokens | exact, s | sampled, s | standard error | most standard errors apart | ratio at 1 % |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve_errors()
    else:
        print(section())
