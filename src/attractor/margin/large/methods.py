"""Which methods solve a large instance in which geometry."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from attractor.geometry import Frobenius, Geometry, Lp, Schatten, has_norm_of
from attractor.margin.large.augmented_lagrangian import (
    AGGRESSIVE,
    CONSERVATIVE,
    solve_by_augmented_lagrangian,
)
from attractor.margin.large.constraint_generation import solve_by_constraint_generation
from attractor.margin.large.instance import Report
from attractor.margin.large.proximal_newton import solve_by_proximal_newton
from attractor.margin.linear.largest_margin import solve_by_largest_margin
from attractor.margin.methods import Candidates, Method, Task, methods_for

_START_TOLERANCE = 0.1
"""Gap of a Frobenius solution from which constraint generation starts in another norm."""
_LARGEST, _LARGEST_LINEAR = 1.5, 2.5
"""Constraints per unknown in working sets: in general, and where their number costs little."""


def large_methods_of(
    geometry: Geometry,
    report: Report,
    own: tuple[Method, ...] | None = None,
    *,
    overdetermined: bool = False,
) -> tuple[Method, ...]:
    """The methods of a geometry for one large instance, in the order to try them.

    Args:
        geometry: The norm.
        report: Callback, called with how far a method is.
        own: Methods of the user's own, in place of those known for the geometry.
        overdetermined: Whether there are far more constraints than unknowns.
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
        report(stage, np.inf)  # how far the Frobenius solution is says nothing of this geometry

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
    if own is None and (has_norm_of(geometry, Lp) or has_norm_of(geometry, Schatten)):
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
