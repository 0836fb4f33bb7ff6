"""One margin problem in several geometries: how far apart their solutions are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from attractor.geometry import Geometry, get_geometry
from attractor.margin import MarginProblem, Solution, solve
from attractor.support.checks import check_items, check_kinds
from attractor.support.errors import InvalidInputError


def compare_geometries(problem: MarginProblem, geometries: Sequence[Geometry | str]) -> xr.Dataset:
    """Solves a problem in several geometries and measures each solution in all of them.

    Args:
        problem: A single problem, with a solution.
        geometries: The norms, or their names.

    Returns:
        ``W`` and ``value`` over ``geometry``, and over ``geometry, measured_in`` the
        ``margin_ratio``: the smallest norm there is in the second over that of the solution of
        the first, in the second. It is at most 1, and 1 on the diagonal; NaN where zero solves.

    Raises:
        InvalidInputError: If there are several problems, this one has no solution, or there are
            no geometries.
    """
    check_kinds(problem=(problem, MarginProblem))
    geometries = check_items("geometries", geometries, Geometry | str, 1)
    if problem.instances is not None:
        raise InvalidInputError("problem", "it has an axis of instances", "Give problem[i]")
    geometries = [get_geometry(geometry) for geometry in geometries]
    solutions = [solve(problem, geometry) for geometry in geometries]
    for solution in solutions:
        assert isinstance(solution, Solution)
        if not np.isfinite(solution.value):
            raise InvalidInputError(
                "problem",
                f"in the {solution.geometry.name} norm it ended as {solution.status}",
                "Give a problem that some matrix solves",
            )
    W = np.stack([solution.W for solution in solutions])
    values = np.array([solution.value for solution in solutions])
    norms = np.stack([geometry.norm(W) for geometry in geometries], axis=-1)
    ratios = np.full_like(norms, np.nan)
    np.divide(values, norms, out=ratios, where=norms > 0)
    names = [geometry.name for geometry in geometries]
    return xr.Dataset(
        {
            "W": (("geometry", "row", "column"), W),
            "value": ("geometry", values),
            "margin_ratio": (("geometry", "measured_in"), ratios),
        },
        coords={"geometry": names, "measured_in": names},
    )
