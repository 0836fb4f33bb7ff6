"""Where paths and runs lead, and whether they have come to rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.files.case import Case
from attractor.geometry import Frobenius, Geometry
from attractor.geometry.vectors import cosines
from attractor.papers.claim import Measurement
from attractor.training import Trajectory
from attractor.training.paths import regularization_path

_AHEAD = 10.0
"""Times that a run may still grow so much: what each would bring is what the last one did."""
_DOUBT = 2.0
"""Times what a run would still bring, if it brought less by the same factor again and again."""
_ROUNDING = 1e-9
"""Share of a distance that comes of rounding, in which nothing falls ever faster."""


def where_it_ends(
    values: Float[np.ndarray, "record"],
    checked: int = 1,
    details: Mapping[str, Any] | None = None,
    *,
    ahead: float = _AHEAD,
    begun: bool = True,
) -> Measurement:
    """The last of some values, with an interval down to where a longer run may take it.

    At which rate runs come nearer is not known in general, so that one that is still on its way may
    end below. The interval begins at zero where what steps bring does not become less from one
    stretch to the next, and otherwise at what would be left after several more of them, or after
    twice what all of them bring if each brings less by the factor of the last two.

    Args:
        values: A distance from what is claimed, at as many records in each of three stretches, in
            each of which the run becomes longer by the same factor.
        checked: How many items it is taken over.
        details: Other numbers.
        ahead: Times that it may still grow so much. Less than the default are right where the rate
            is known: if each stretch brings at most half of what the one before did, all that are
            left bring no more than the last one.
        begun: Whether the run has got so far that its end could be seen; else it may end anywhere.
    """
    now, (first, second, third) = float(values[-1]), np.split(np.asarray(values, float), 3)
    fluctuation = 2 * math.sqrt((_scatter(second) + _scatter(third)) / len(third))
    earlier, brought = float(first.mean() - second.mean()), float(second.mean() - third.mean())
    as_fast = brought > max(fluctuation, earlier, _ROUNDING * abs(now))
    open_ended = as_fast or not begun
    next_one = max(0.0, brought + fluctuation)
    if next_one < earlier:
        ahead = min(ahead, _DOUBT * next_one / (earlier - next_one))
    least = 0.0 if open_ended else max(0.0, now - ahead * next_one)
    found = {"brought by the last stretch": brought, "by the one before": earlier}
    return Measurement(now, checked, found | dict(details or {}), (min(least, now), now))


def _scatter(values: Float[np.ndarray, "record"]) -> float:
    """The variance about a straight line."""
    place = np.arange(len(values)) - (len(values) - 1) / 2
    slope = place @ values / max(place @ place, 1.0)
    return float((values - values.mean() - slope * place).var())


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
