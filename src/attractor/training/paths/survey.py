"""Grid search over a whole ball, where it has few enough coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from jaxtyping import Float

from attractor.training.paths.following import Place, Search, unit

_ANGLES = {1: 360, 2: 90}
"""Directions of each circle, by the number of balls looked over at once."""
_SIZES = {1: 8, 2: 4}
"""Lengths of W, likewise."""
_LEAST_SCORE = 0.3
"""Size of the scores of the shortest W."""
_KEPT = 3
"""Lowest places returned."""


def can_be_surveyed(shapes: tuple[tuple[int, ...], ...]) -> bool:
    """Whether every ball is an interval or a disk."""
    return all(np.prod(shape) <= 2 for shape in shapes)


def lowest_places(
    search: Search, radius: float, shapes: tuple[tuple[int, ...], ...], reach: float
) -> Iterator[Place]:
    """The lowest places of a polar grid, of those that no neighbor lies below.

    Args:
        search: The objective and its minimizer.
        radius: The radius.
        shapes: Shapes of the coordinates of W, and of the head where it is trained.
        reach: Largest score for W of norm one.
    """
    count = len(shapes)
    circles = [_circle(shape, _ANGLES[count]) for shape in shapes]
    shortest = min(1.0, _LEAST_SCORE / max(radius * reach, _LEAST_SCORE))
    sizes = np.geomspace(shortest, 1, _SIZES[count])
    grid = (len(sizes), *map(len, circles))
    size, first, *rest = (axis.ravel() for axis in np.indices(grid))
    directions = np.stack([unit(C, search) for C in circles[0]])
    places = (
        sizes[size][:, None, None] * directions[first],
        *(circle[chosen] for circle, chosen in zip(circles[1:], rest, strict=True)),
    )
    values = np.nan_to_num(search.values(radius, places), nan=np.inf)
    ends: Any = ("nearest", *("wrap",) * count)
    around = scipy.ndimage.minimum_filter(values.reshape(grid), size=3, mode=ends)
    valleys = np.flatnonzero((values == around.ravel()) & np.isfinite(values))
    for number in valleys[np.argsort(values[valleys], kind="stable")][:_KEPT]:
        yield tuple(ball[number] for ball in places)


def _circle(shape: tuple[int, ...], angles: int) -> Float[np.ndarray, "direction p q"]:
    """Unit vectors all around; of a single coordinate, both."""
    if np.prod(shape) == 1:
        return np.reshape([1.0, -1.0], (2, *shape))
    turn = 2 * np.pi * np.arange(angles) / angles
    return np.stack([np.cos(turn), np.sin(turn)], axis=-1).reshape(-1, *shape)
