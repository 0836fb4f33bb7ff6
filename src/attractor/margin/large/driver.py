"""Solving one instance of many constraints: its memory, its methods, its progress."""

from __future__ import annotations

import bisect
import functools
from dataclasses import replace

import numpy as np

from attractor.geometry import Frobenius, Geometry, Lp, Schatten, has_norm_of
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import Certificate
from attractor.margin.large.augmented_lagrangian import (
    AGGRESSIVE,
    CONSERVATIVE,
    solve_by_augmented_lagrangian,
)
from attractor.margin.large.constraint_generation import (
    is_overdetermined,
    solve_by_constraint_generation,
)
from attractor.margin.large.instance import Report
from attractor.margin.large.proximal_newton import solve_by_proximal_newton
from attractor.margin.linear.largest_margin import solve_by_largest_margin
from attractor.margin.methods import Candidates, Method, Task, attempt, methods_for
from attractor.margin.problem import MarginProblem
from attractor.support.memory import require_memory
from attractor.support.progress import ProgressBar

_MOST_DENSE = 2000
"""Constraints up to which methods that hold a Gram matrix are faster or more exact."""
_FEWEST_GENERATED = 500
"""Constraints from which on solving few of them at a time is faster, where unknowns are few: 2 to 9
times at 500 to 700 constraints, 25 to 90 times from 1,500 on (but not in the Frobenius norm)."""
_START_TOLERANCE = 0.1
"""Gap of a Frobenius solution from which constraint generation starts in another norm."""
_LARGEST, _LARGEST_LINEAR = 1.5, 2.5
"""Constraints per unknown in working sets: in general, and where their number costs little."""


def is_large(constraints: int) -> bool:
    """Whether an instance of so many constraints is solved without a Gram matrix."""
    return constraints > _MOST_DENSE


def has_few_unknowns(constraints: int, shape: tuple[int, int], geometry: Geometry) -> bool:
    """Whether few of its constraints at a time are solved for, though all would not be too many."""
    # Of a vector, every Schatten norm is that of Frobenius.
    is_frobenius = geometry == Frobenius() or (min(shape) == 1 and has_norm_of(geometry, Schatten))
    return (
        _FEWEST_GENERATED <= constraints <= _MOST_DENSE
        and _is_known(geometry)
        and not is_frobenius
        and is_overdetermined(constraints, shape, geometry)
    )


def _is_known(geometry: Geometry) -> bool:
    return has_norm_of(geometry, Lp) or has_norm_of(geometry, Schatten)


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
    scaled: ScaledConstraints,
    geometry: Geometry,
    tolerance: float,
    progress: ProgressBar,
    dense: tuple[Method, ...],
    *,
    first: tuple[Method, ...] = (),
    own: tuple[Method, ...] | None = None,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Certificate, np.ndarray]:
    """Tries the methods for many constraints on one instance; returns what ``attempt`` does.

    Args:
        scaled: The constraints of one instance.
        geometry: The norm.
        tolerance: Relative duality gap to reach.
        progress: Is moved on by one in all, as the gap falls.
        dense: Methods that hold a Gram matrix, tried last where there are not too many for one.
        first: Methods to try before those for many constraints.
        own: Methods of the user's own in place of those for many constraints.
        start: Multipliers that the first method is handed, in the units of ``scaled``.
    """
    done = 0.0

    def report(stage: int, gap: float) -> None:
        nonlocal done
        progress.note(f"stage {stage}, gap {gap:.1e}")
        share = np.log(min(gap, 1.0)) / np.log(min(tolerance, 0.1)) if gap > 0 else 1.0
        if share > done:
            progress(min(share, 1.0) - done)
            done = min(share, 1.0)

    shape = scaled.left.shape[-1], scaled.right.shape[-1]
    overdetermined = is_overdetermined(scaled.bounds.shape[-1], shape, geometry)
    last = () if is_large(scaled.bounds.shape[-1]) else dense
    known = large_methods_of(geometry, report, own, overdetermined=overdetermined, last=last)
    found = attempt(scaled, geometry, (*first, *known), tolerance, start)
    progress(1.0 - done)
    return found


def large_methods_of(
    geometry: Geometry,
    report: Report,
    own: tuple[Method, ...] | None = None,
    *,
    overdetermined: bool = False,
    last: tuple[Method, ...] = (),
) -> tuple[Method, ...]:
    """The methods of a geometry for one large instance, in the order to try them.

    Args:
        geometry: The norm.
        report: Callback, called at the end of every stage.
        own: Methods of the user's own, in place of those known for the geometry.
        overdetermined: Whether there are far more constraints than unknowns.
        last: Methods in place of those for all constraints at a time.
    """
    methods = methods_for(geometry) if own is None else own
    dense = methods_for(Frobenius())
    if methods == dense:
        whole: list[Method] = [
            functools.partial(solve_by_augmented_lagrangian, settings=settings, report=report)
            for settings in (AGGRESSIVE, CONSERVATIVE)
        ]
        few = [_generate(dense, report, started=False)] if overdetermined else []
        return (*few, *whole)

    def report_start(stage: int, gap: float) -> None:
        report(stage, np.inf)  # the gap in the Frobenius norm is none in this geometry

    start: Method
    start = functools.partial(
        solve_by_augmented_lagrangian, settings=AGGRESSIVE, report=report_start
    )
    first: list[Method] = [start]
    if overdetermined:
        first = [functools.partial(_generate_start, otherwise=start, report=report_start)]
    if overdetermined and own is None:
        first.append(_generate(methods, report, started=True))
        if isinstance(geometry, Lp) and geometry.p in (1, np.inf):
            linear = (solve_by_largest_margin,)
            first.insert(0, _generate(linear, report, started=False, largest=_LARGEST_LINEAR))
    if last:
        return *first, *last
    if own is None and _is_known(geometry):
        return *first, functools.partial(solve_by_proximal_newton, report=report)
    return *first, *methods  # those that know the norm, at any size


def _generate(
    methods: tuple[Method, ...], report: Report, *, started: bool, largest: float = _LARGEST
) -> Method:
    """Constraint generation with methods for the working set."""
    return functools.partial(
        solve_by_constraint_generation,
        methods=methods,
        report=report,
        started=started,
        largest=largest,
    )


def _generate_start(task: Task, otherwise: Method, report: Report) -> Candidates:
    """A matrix near the Frobenius solution, by constraint generation or else by another method."""
    scaled, tolerance = task.scaled, max(task.tolerance, _START_TOLERANCE)
    generate = _generate(methods_for(Frobenius()), report, started=False)
    W, x = generate(replace(task, geometry=Frobenius(), tolerance=tolerance))
    if not x.any():
        return otherwise(task)
    size = float(task.geometry.dual_norm(scaled.combine(x))[0])
    return W, x / (size if np.isfinite(W).all() and size > 0 else 1.0)
