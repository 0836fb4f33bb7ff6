"""Which methods solve a large instance in which geometry."""

from __future__ import annotations

import functools

import numpy as np

from attractor.geometry import Frobenius, Geometry, Lp, Schatten, has_norm_of
from attractor.margin.large.augmented_lagrangian import (
    AGGRESSIVE,
    CONSERVATIVE,
    solve_by_augmented_lagrangian,
)
from attractor.margin.large.instance import Report
from attractor.margin.large.proximal_newton import solve_by_proximal_newton
from attractor.margin.methods import Method, methods_for


def large_methods_of(
    geometry: Geometry, report: Report, own: tuple[Method, ...] | None = None
) -> tuple[Method, ...]:
    """The methods of a geometry for one large instance, in the order to try them.

    Args:
        geometry: The norm.
        report: Is told how far a method is.
        own: Methods of the user's own, in place of those known for the geometry.
    """
    methods = methods_for(geometry) if own is None else own
    if methods == methods_for(Frobenius()):
        return tuple(
            functools.partial(solve_by_augmented_lagrangian, settings=pace, report=report)
            for pace in (AGGRESSIVE, CONSERVATIVE)
        )

    def report_start(stage: int, gap: float) -> None:
        report(stage, np.inf)  # how far the Frobenius solution is says nothing of this geometry

    start = functools.partial(
        solve_by_augmented_lagrangian, settings=AGGRESSIVE, report=report_start
    )
    if own is None and (has_norm_of(geometry, Lp) or has_norm_of(geometry, Schatten)):
        return start, functools.partial(solve_by_proximal_newton, report=report)
    return start, *methods  # those that know the norm, at any size
