"""Regularization paths of cases, and the directions they tend to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.files.case import Case
from attractor.geometry import Frobenius, Geometry
from attractor.geometry.vectors import cosines
from attractor.papers.claim import Measurement
from attractor.papers.measurements.at_rest import where_it_ends
from attractor.training import Trajectory
from attractor.training.paths import regularization_path

RADII = (1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Radii at which paths are followed, in norms of the solution that they are to tend to."""


def path(
    case: Case,
    seed: int,
    geometry: Geometry = Frobenius(),  # noqa: B008 - immutable
    *,
    unit: float | None = None,
    **other: Any,
) -> Trajectory:
    """The regularization path of a case, at the radii ``RADII``.

    Args:
        case: The data.
        seed: Names the random starts.
        geometry: The norm of the ball.
        unit: The unit of the radii; default: the norm of the best tokens' solution.
        **other: Other arguments of ``regularization_path``.
    """
    if unit is None:
        unit = float(case.solution(geometry, case.optimal).value)

    def compute() -> Trajectory:
        return regularization_path(
            case.tokens,
            case.head,
            geometry,
            radii=np.array(RADII) * unit,
            parameterization=case.parameterization,
            seed=seed,
            **other,
        )

    named = tuple(sorted((name, str(value)) for name, value in other.items()))
    return case.once(("path", seed, geometry.name, unit, named), compute)


def distance_of_path(run: Trajectory, direction: Float[np.ndarray, "d e"]) -> Measurement:
    """``1 - cos`` of the angle between the path and a direction, at the last radius."""
    distances = 1 - cosines(run.data["W"].to_numpy()[0, 0], direction)
    details = {
        "radii": run.steps.tolist(),
        "1 - cos at these": distances.tolist(),
        "optimality": float(run.data["optimality"].max()),
    }
    return end_of_path(distances, len(run.data["seed"]), details)


def end_of_path(
    distances: Float[np.ndarray, "radius"], checked: int, details: Mapping[str, Any], **other: Any
) -> Measurement:
    """A distance of a path at its last radius, with an interval down to where longer ones may come.

    Args:
        distances: At ``RADII``. In the end they fall like one over the radius at least, so that all
            further decades together bring less than the last one did.
        checked: How many items it is taken over.
        details: Other numbers.
        **other: Other arguments of ``where_it_ends``.
    """
    return where_it_ends(distances[-3:], checked, details, ahead=1.0, **other)
