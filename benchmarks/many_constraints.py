"""Margin problems with far more constraints than unknowns, beside HiGHS and Clarabel.

Both sides solve to a relative gap of 1e-7, each run in a process of its own, in turn. Of the
rivals only the solver is timed: HiGHS through ``scipy.optimize.linprog`` by its interior-point
method on the dual, the fastest of its methods and formulations on these data, and Clarabel on
what cvxpy made of the problem. Run as ``python -m benchmarks.many_constraints``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import ROOT, machine, peak_memory, spread, versions

TOLERANCE = 1e-7
RIVALS = {
    "l_1": "HiGHS",
    "l_inf": "HiGHS",
    "frobenius": "Clarabel",
    "l_1.5": "Clarabel",
    "l_3": "Clarabel",
    "nuclear": "Clarabel",
    "spectral": "Clarabel",
}
ALONE = ("schatten_1.5", "schatten_3")
"""Norms that cvxpy has no cone for."""


class Case(NamedTuple):
    """Constraints of one kind on a matrix of one shape, and how often to run both sides."""

    kind: str
    constraints: int
    rows: int
    columns: int
    norm: str
    side: str = "ours"


class Measured(NamedTuple):
    """What a process reports: CPU seconds, GB, relative gap (of rivals none) and value."""

    seconds: float
    gigabytes: float
    gap: float
    value: float


SUITES = (
    ("multiclass", 10_500, 15, 25, 5, tuple(RIVALS)),
    ("multiclass", 10_500, 16, 16, 5, tuple(RIVALS)),
    ("planted", 10_000, 15, 25, 1, tuple(RIVALS)),
    ("planted", 10_000, 16, 16, 1, tuple(RIVALS)),
    ("multiclass", 100_000, 15, 25, 1, tuple(RIVALS)),
    ("multiclass", 100_000, 16, 16, 1, tuple(RIVALS)),
    ("planted", 100_000, 15, 25, 1, ()),
    ("planted", 100_000, 16, 16, 1, ()),
)
"""Kind, constraints, shape, runs, and norms whose rivals are run."""


def data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Left and right vectors.

    "multiclass" asks that of 15 or 16 classes the one of largest score under a random matrix beats
    each other one for every example; "planted" has random constraints that a random matrix meets.
    """
    rng = np.random.default_rng(0)
    m, d, e = case.constraints, case.rows, case.columns
    target = rng.standard_normal((d, e))
    if case.kind == "planted":
        left, right = rng.standard_normal((m, d)), rng.standard_normal((m, e))
        return left * np.sign(np.einsum("md,de,me->m", left, target, right))[:, None], right
    examples = rng.standard_normal((-(-m // (d - 1)), e))
    best = (examples @ target.T).argmax(-1)
    example, other = np.nonzero(np.arange(d) != best[:, None])
    classes = np.eye(d)
    return (classes[best[example]] - classes[other])[:m], examples[example][:m]


def run(case: Case) -> Measured:
    """Solves one case in this process."""
    left, right = data(case)
    if case.side == "ours":
        return _ours(case, left, right)
    rows = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
    return (_highs if RIVALS[case.norm] == "HiGHS" else _clarabel)(case, rows)


def _ours(case: Case, left: np.ndarray, right: np.ndarray) -> Measured:
    from attractor.geometry import get_geometry
    from attractor.margin import MarginProblem, solve

    start = time.process_time()
    solution = solve(MarginProblem(left, right), get_geometry(case.norm), tolerance=TOLERANCE)
    seconds = time.process_time() - start
    return Measured(seconds, peak_memory(), float(solution.gap), float(solution.value))


def _highs(case: Case, rows: np.ndarray) -> Measured:
    import scipy.sparse as sparse
    from scipy.optimize import linprog

    m, n = rows.shape
    turned = sparse.csc_matrix(rows.T)
    if case.norm == "l_1":
        costs, above = -np.ones(m), sparse.vstack([turned, -turned]).tocsc()
        program: dict[str, Any] = {"A_ub": above, "b_ub": np.ones(2 * n)}
    else:
        unit = sparse.identity(n)
        costs = np.append(-np.ones(m), np.zeros(2 * n))
        sums = sparse.csr_matrix(np.append(np.zeros(m), np.ones(2 * n))[None])
        program = {
            "A_eq": sparse.hstack([turned, -unit, unit]).tocsc(),
            "b_eq": np.zeros(n),
            "A_ub": sums,
            "b_ub": [1.0],
        }
    del rows
    start = time.process_time()
    found = linprog(costs, **program, method="highs-ipm")
    return Measured(time.process_time() - start, peak_memory(), np.nan, -found.fun)


def _clarabel(case: Case, rows: np.ndarray) -> Measured:
    import cvxpy as cp
    import scipy.sparse as sparse

    W = cp.Variable((case.rows, case.columns))
    entries = cp.vec(W, order="C")
    norms = {
        "frobenius": lambda: cp.norm(entries, 2),
        "l_1.5": lambda: cp.pnorm(entries, 1.5),  # pyright: ignore[reportArgumentType]
        "l_3": lambda: cp.pnorm(entries, 3),
        "nuclear": lambda: cp.normNuc(W),
        "spectral": lambda: cp.sigma_max(W),
    }
    held = sparse.csr_matrix(rows) if np.mean(rows == 0) > 0.5 else rows
    problem = cp.Problem(cp.Minimize(norms[case.norm]()), [held @ entries >= 1])  # pyright: ignore[reportArgumentType]
    options = {"tol_gap_abs": 1e-12, "tol_gap_rel": TOLERANCE, "tol_feas": TOLERANCE}
    compiled, chain, _ = problem.get_problem_data("CLARABEL")
    assert chain is not None
    start = time.process_time()
    answer = chain.solve_via_data(problem, compiled, solver_opts=options)
    seconds = time.process_time() - start
    return Measured(seconds, peak_memory(), np.nan, float(answer.obj_val))


def measure(case: Case) -> Measured:
    """The same in a process of its own."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.many_constraints", json.dumps(case._asdict())],
        cwd=ROOT,
        env=environment,
        text=True,
        capture_output=True,
        check=True,
    )
    return Measured(*map(float, done.stdout.split()))


def _shown(values: list[float]) -> str:
    """A single number, or the median with the smallest and the largest."""
    return spread(values) if len(values) > 1 else f"{values[0]:.3g}"


def table(kind: str, m: int, d: int, e: int, runs: int, norms: tuple[str, ...]) -> list[str]:
    """Rows of the table for one kind, size and shape."""
    lines = []
    for norm in (*RIVALS, *ALONE):
        case = Case(kind, m, d, e, norm)
        ours, theirs = [], []
        for _ in range(runs):
            ours.append(measure(case))
            if norm in norms:
                theirs.append(measure(case._replace(side="rival")))
        line = (
            f"| {kind} | {m:,} | {d} x {e} | {norm} | {_shown([o.seconds for o in ours])} | "
            f"{max(o.gigabytes for o in ours):.2f} | {max(o.gap for o in ours):.1e} | "
        )
        if theirs:
            ratios = [b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True)]
            line += (
                f"{RIVALS[norm]} | {_shown([r.seconds for r in theirs])} | "
                f"{max(r.gigabytes for r in theirs):.2f} | "
                f"{theirs[0].value / ours[0].value - 1:+.1e} | **{_shown(ratios)}x** |"
            )
        else:
            line += "| | | | |"
        print(line, file=sys.stderr, flush=True)
        lines.append(line)
    return lines


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    lines = [line for suite in SUITES for line in table(*suite)]
    return f"""## Many constraints on few unknowns

Every class beats every other one ("multiclass": rows with two blocks that are not zero), or random
dense constraints that a random matrix meets ("planted"). Seconds of CPU time on one thread, median
of 5 runs of both sides in turn with the smallest and the largest, of one run where there is one
number only; ours from the arrays to the certificate on all constraints, of the rivals the solver
alone. Both stop at a relative gap of {TOLERANCE:g}; ours is certified, and "off" is how far the
value of the rival is from ours. HiGHS solves the dual by interior points, the fastest of its
methods here. Memory is the most the whole process held. Where no rival is named none was run.

{machine()}; {versions("numpy", "scipy", "cvxpy", "clarabel")}

| constraints | number | matrix | norm | ours, s | GB | gap | rival | s | GB | off | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        print(*run(Case(**json.loads(sys.argv[1]))))
    else:
        print(section())
