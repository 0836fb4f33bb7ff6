"""Margin problems in every geometry: all at once against one at a time through cvxpy.

Two peers. The usual way is that of the papers' code: for each data set a cvxpy problem over the
full matrix, one scalar constraint object for every pair of tokens, and the solver that cvxpy
picks, with its default accuracy. The tight way is the best that cvxpy can be asked for: one
vectorized constraint, in the spans where the norm allows that, and Clarabel at tight tolerance.
Run as ``python -m benchmarks.geometries``, with names of geometries to run only those.
"""

from __future__ import annotations

import sys
import time
import warnings
from statistics import median

import numpy as np

from benchmarks.machine import Worker, machine, spread, versions
from benchmarks.problems import unit_gaussian

RUNS = 5
NAMES = (
    "frobenius",
    "nuclear",
    "spectral",
    "l_1",
    "l_1.1",
    "l_1.5",
    "l_1.75",
    "l_3",
    "l_4",
    "l_inf",
)
"""Geometries that cvxpy has an objective for; Schatten norms in general have none."""
SIZES = {"small": (1000, 6, 8, 10), "large": (20, 20, 20, 50)}
SAMPLE = {"small": 5, "large": 1}
"""Problems a peer is timed on in each run."""


def serve_ours(name: str, size: str) -> None:
    """Builds, solves and certifies every problem; prints seconds, worst and 99th gap."""
    import attractor as at
    from attractor.geometry import get_geometry

    tokens, selection = unit_gaussian(*SIZES[size])
    geometry = get_geometry(name)

    def once() -> tuple[float, float, float]:
        start = time.perf_counter()
        gap = at.solve(at.MarginProblem.from_selection(tokens, selection), geometry).gap
        return time.perf_counter() - start, float(gap.max()), float(np.quantile(gap, 0.99))

    print(once()[0], flush=True)
    for _ in sys.stdin:
        print(*once(), flush=True)


def serve_peer(name: str, size: str, *, tight: bool) -> None:
    """Solves a sample by cvxpy; prints seconds an instance, and the sample's worst gap."""
    import attractor as at
    from attractor.geometry import get_geometry
    from attractor.margin.certificates.certificate import certify

    tokens, selection = unit_gaussian(*SIZES[size])
    geometry = get_geometry(name)
    problems = at.MarginProblem.from_selection(tokens, selection)
    one = by_tight if tight else by_usual
    print(0.0, flush=True)
    for turn, _ in enumerate(sys.stdin):
        chosen = [(turn * SAMPLE[size] + k) % len(problems) for k in range(SAMPLE[size])]
        start = time.perf_counter()
        answers = [one(problems[i], name) for i in chosen]
        seconds = (time.perf_counter() - start) / len(chosen)
        W, multipliers = (np.stack(arrays) for arrays in zip(*answers, strict=True))
        gaps = certify(problems[chosen], W, multipliers, geometry).gap
        print(seconds, float(gaps.max()), flush=True)


def objective(name: str, W):
    """The norm as cvxpy writes it."""
    import cvxpy

    atoms = {
        "frobenius": lambda: cvxpy.norm(W, "fro"),
        "nuclear": lambda: cvxpy.normNuc(W),
        "spectral": lambda: cvxpy.sigma_max(W),
    }
    if name in atoms:
        return atoms[name]()
    return cvxpy.pnorm(cvxpy.vec(W, order="C"), float(name.removeprefix("l_")))


def by_usual(problem, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The full matrix, a scalar constraint for each pair of tokens, default solver."""
    import cvxpy

    W = cvxpy.Variable(problem.shape)
    constraints = [a @ W @ b >= 1 for a, b in zip(problem.left, problem.right, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cvxpy.Problem(cvxpy.Minimize(objective(name, W)), constraints).solve()
    return W.value, np.array([float(c.dual_value) for c in constraints])


def by_tight(problem, name: str) -> tuple[np.ndarray, np.ndarray]:
    """One vectorized constraint, in the spans where that is exact, Clarabel at 1e-10."""
    import cvxpy

    left, right = problem.left, problem.right
    bases = np.eye(left.shape[1]), np.eye(right.shape[1])
    if name in ("frobenius", "nuclear", "spectral"):
        bases = span(left), span(right)
    left, right = left @ bases[0], right @ bases[1]
    W = cvxpy.Variable((left.shape[1], right.shape[1]))
    rows = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
    held = rows @ cvxpy.vec(W, order="C") >= 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is asked for more than it promises
        model = cvxpy.Problem(cvxpy.Minimize(objective(name, W)), [held])
        tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
        model.solve(solver=cvxpy.CLARABEL, **tight)
    return bases[0] @ W.value @ bases[1].T, np.asarray(held.dual_value)


def span(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the span of rows, as columns."""
    _, values, basis = np.linalg.svd(vectors, full_matrices=False)
    return basis[values > 1e-12 * values[0]].T


def compare(name: str, size: str, *, single_thread: bool) -> str:
    """A row of the table: both sides run in turn, in processes of their own."""
    sides = [
        Worker("benchmarks.geometries", f"{side}:{name}:{size}", single_thread=single_thread)
        for side in ("ours", "usual", "tight")
    ]
    runs = [[side.run() for side in sides[:2]] for _ in range(RUNS)]
    often = RUNS if size == "small" else 1
    tight_runs = [sides[2].run() for _ in range(often)]
    first = sides[0].ready[0]
    for side in sides:
        side.close()
    instances = SIZES[size][0]
    ours = np.array([run[0][0] for run in runs]) / instances
    usual, tight = np.array([run[1][0] for run in runs]), np.array([run[0] for run in tight_runs])
    gaps = [max(run[k][1] for run in runs) for k in (0, 1)] + [max(run[1] for run in tight_runs)]
    ratios = usual / ours, tight / ours[:often]
    shown = [f"{median(r):.0f}x ({min(r):.0f} to {max(r):.0f})" for r in ratios]
    return (
        f"| {name} | {spread(list(1e3 * ours))} | {1e3 * first / instances:.3g} | {gaps[0]:.1e} | "
        f"{1e3 * median(usual):.3g} | {gaps[1]:.1e} | **{shown[0]}** | "
        f"{1e3 * median(tight):.3g} | {gaps[2]:.1e} | {shown[1]} |"
    )


def table(names: tuple[str, ...], size: str, *, single_thread: bool) -> str:
    """Rows for several geometries under a head."""
    head = (
        "| geometry | ours, ms | first call, ms | worst gap | usual way, ms | its gap | ratio | "
        "tight way, ms | its gap | ratio |\n" + "| --- " * 10 + "|\n"
    )
    return head + "\n".join(compare(name, size, single_thread=single_thread) for name in names)


def section(names: tuple[str, ...] = NAMES) -> str:
    """Measures and returns a section of RESULTS.md."""
    parts = []
    one, both = ("one core, one thread", True), ("default threads", False)
    for size, (instances, n, T, d) in SIZES.items():
        for threads, single in (one, both) if size == "small" else (one,):
            parts.append(
                f"**{instances} data sets of n = {n}, T = {T}, d = {d}** ({n * (T - 1)} "
                f"constraints on {d} x {d}); {threads}; milliseconds an instance.\n\n"
                + table(names, size, single_thread=single)
            )
            print(parts[-1], file=sys.stderr, flush=True)
    return f"""## Margin problems in every geometry

Unit Gaussian tokens, those of highest score selected. Ours is `from_selection` and `solve` on all
data sets in one call, certificates included; nothing is compiled, so that the first call of a
process differs from later ones by imports and caches alone. The usual way is cvxpy as the papers'
code calls it: a full variable, one scalar constraint object for every pair of tokens, default
solver and accuracy, modeling included. The tight way is one vectorized constraint, reduced to the
spans where the norm is unitarily invariant, and Clarabel at tolerance 1e-10. Peers are timed on
{SAMPLE["small"]} and {SAMPLE["large"]} problems a run. Ours and the usual way ran in turn, {RUNS}
times, in processes of their own, and after them the tight way, as often for the small problems and
once for the large ones; gaps are certified by the same code, worst of all problems timed.

{machine()}; {versions("numpy", "scipy", "cvxpy", "clarabel", "scs")}

{(chr(10) * 2).join(parts)}

What limits ours, by profiles of one thread: for small Frobenius problems a third of the time goes
into linear systems of forty unknowns, and the rest into building constraints, certificates and
many passes over small arrays; two threads gain nothing there. In the nuclear and the spectral norm
the largest parts are forming the m x m matrix of each step, then singular values, then the linear
system; in the entrywise norms, the system and forming its matrix.
"""


if __name__ == "__main__":
    if len(sys.argv) > 1 and ":" in sys.argv[1]:
        side, name, size = sys.argv[1].split(":")
        if side == "ours":
            serve_ours(name, size)
        else:
            serve_peer(name, size, tight=side == "tight")
    else:
        print(section(tuple(sys.argv[1:]) or NAMES))
