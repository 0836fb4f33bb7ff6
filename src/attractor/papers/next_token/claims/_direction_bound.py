"""Printed upper bounds on ``1 - cos`` to a solution, compared with what it is at every step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Measurement


class Approach(NamedTuple):
    """How near a direction comes to that of its solution, and the shape of a bound on it.

    Attributes:
        steps: The steps t, one of which is the first.
        distance: ``1 - cos`` after each.
        shape: The bound after each, but for a constant factor.
    """

    steps: Float[np.ndarray, "step"]
    distance: Float[np.ndarray, "step"]
    shape: Float[np.ndarray, "step"]


def over_bound(found: Approach, constant: float) -> Measurement:
    """The largest ``1 - cos`` from the second step on, over its bound with a constant."""
    late = found.steps >= 2
    least = float((found.distance[late] / found.shape[late]).max())
    if not least:  # the direction is exact
        return Measurement(np.nan, 0)
    details = {
        "least constant that would do": least,
        "bound in the end": float(constant * found.shape[-1]),
        "1 - cos in the end": float(found.distance[-1]),
    }
    return Measurement(least / constant, int(late.sum()), details)


def falling_to_a_tenth(found: Approach) -> float:
    """The constant with which ``1 - cos`` would have to fall to a tenth in the second step."""
    first, second = np.searchsorted(found.steps, [1, 2])
    return float(found.distance[first] / (10 * found.shape[second]))
