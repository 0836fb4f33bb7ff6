"""Solving one instance of many constraints: its memory, its methods, its progress."""

from __future__ import annotations

import bisect

import numpy as np

from attractor.geometry import Geometry
from attractor.margin.certificate import Certificate
from attractor.margin.large.constraint_generation import is_overdetermined
from attractor.margin.large.methods import large_methods_of
from attractor.margin.methods import Method, attempt
from attractor.margin.problem import MarginProblem
from attractor.margin.scaling import ScaledConstraints
from attractor.memory import require_memory
from attractor.progress import ProgressBar

_MOST_DENSE = 2000
"""Constraints up to which methods that hold a Gram matrix are faster or more exact."""


def is_large(constraints: int) -> bool:
    """Whether an instance of so many constraints is solved without a Gram matrix."""
    return constraints > _MOST_DENSE


def check_memory(problem: MarginProblem) -> None:
    """Refuses a problem whose solution does not fit into memory.

    Raises:
        InvalidInputError: With the memory it takes, and the number of constraints that would fit.
    """
    (d, e), m = problem.shape, problem.bounds.shape[-1]
    instances = problem.instances or 1

    def remedy(available: float) -> str:
        sizes = range(_MOST_DENSE + 1)
        fitting = bisect.bisect_right(sizes, available, key=lambda n: _bytes(n, d, e, instances))
        if fitting > _MOST_DENSE:
            sizes = range(_MOST_DENSE + 1, m + 1)
            fitting += bisect.bisect_right(
                sizes, available, key=lambda n: _bytes(n, d, e, instances)
            )
        if fitting <= 1:
            return f"Not even one constraint on a {d} x {e} matrix would fit; take smaller vectors"
        return (
            f"With matrices of that size, about {fitting - 1:,} constraints would fit; take fewer, "
            "or vectors of a lower dimension"
        )

    require_memory(
        "problem",
        f"solving {m:,} constraints on a {d} x {e} matrix",
        needed=_bytes(m, d, e, instances),
        remedy=remedy,
    )


def _bytes(m: int, d: int, e: int, instances: int) -> float:
    """Memory taken beyond that of the problem."""
    matrices = 8.0 * d * e * (15 + 2 * instances)
    if is_large(m):  # scaled vectors, a copy of those that are free, blocks, other vectors
        return matrices + 8.0 * m * (2 * d + e + 464)
    return matrices + 8.0 * m * (2 * d + 2 * e + 6 * m)


def solve_large(
    problem: MarginProblem,
    geometry: Geometry,
    tolerance: float,
    progress: ProgressBar,
    *,
    first: tuple[Method, ...] = (),
    own: tuple[Method, ...] | None = None,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Certificate, np.ndarray]:
    """What ``attempt`` returns for a batch, of one instance.

    Args:
        problem: A batched problem of one instance.
        geometry: The norm.
        tolerance: Relative duality gap to reach.
        progress: Is moved on by one in all, as the gap falls.
        first: Methods to try before those for many constraints.
        own: Methods of the user's own in place of those for many constraints.
        start: Multipliers that the first method is handed.
    """
    done = 0.0

    def report(stage: int, gap: float) -> None:
        nonlocal done
        progress.note(f"stage {stage}, gap {gap:.1e}")
        share = np.log(min(gap, 1.0)) / np.log(min(tolerance, 0.1)) if gap > 0 else 1.0
        if share > done:
            progress(min(share, 1.0) - done)
            done = min(share, 1.0)

    overdetermined = is_overdetermined(problem.bounds.shape[-1], problem.shape)
    known = large_methods_of(geometry, report, own, overdetermined=overdetermined)
    methods = (*first, *known)
    found = attempt(ScaledConstraints.of(problem), geometry, methods, tolerance, start)
    progress(1.0 - done)
    return found
