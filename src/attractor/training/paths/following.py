"""Continuation of minima from radius to radius, with a search for lower ones."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_KEPT = 3
"""Minima followed at a time."""
_INSIDE = 1e-6
"""Distance from the edge from which a minimum lies inside the ball."""
_WORSE = 1e-12
"""Rise of the objective, from one radius to the next, that is more than rounding."""
_SAME = 1e-4
"""Distance of directions below which two minima are one."""

Place = tuple[np.ndarray, ...]
"""Points of unit balls: of W in its coordinates, and of the head where it is trained."""


class Point(NamedTuple):
    """A local minimum at one radius.

    Attributes:
        place: The minimizer.
        value: The objective.
        log_excess: Logarithm of the loss above the best that attention could reach.
        optimality: How far the minimizer is from stationary.
        iterations: Newton steps it took.
    """

    place: Place
    value: float
    log_excess: float
    optimality: float
    iterations: int


class Search(abc.ABC):
    """Local minima over balls of any radius, for one data set."""

    @abc.abstractmethod
    def __call__(self, radius: float, start: Place) -> Point:
        """The local minimum that a start leads to."""

    @abc.abstractmethod
    def values(
        self, radius: float, places: tuple[Float[np.ndarray, "place p q"], ...]
    ) -> Float[np.ndarray, "place"]:
        """The objective at many places."""

    @abc.abstractmethod
    def norm(self, C: Float[np.ndarray, "p q"]) -> float:
        """The norm of W in its coordinates."""


@dataclass
class Branch:
    """The last two of some minima that continue each other.

    Attributes:
        radii: Their radii.
        places: The minimizers.
    """

    radii: list[float] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def predict(self, radius: float, search: Search) -> Place:
        """The predicted minimizer: on a line through the last two matrices.

        Minimizers are ``R`` times a direction plus an offset that settles, so that a line keeps
        the differences of margins that the next minimum will have. A minimum inside the ball
        stays where it is.
        """
        C, *rest = self.places[-1]
        if search.norm(C) < 1 - _INSIDE:
            return self.stay(radius)
        if len(self.places) > 1:
            before, last = self.radii
            share = (radius - last) / (last - before)
            C = last * C + share * (last * C - before * self.places[0][0])
        return unit(C, search), *rest

    def stay(self, radius: float) -> Place:
        """The last minimizer, in the ball of a larger radius."""
        C, *rest = self.places[-1]
        return C * (self.radii[-1] / radius), *rest

    def extended(self, radius: float, place: Place) -> Branch:
        """The branch with one more minimum."""
        return Branch([*self.radii[-1:], radius], [*self.places[-1:], place])


class Starts(abc.ABC):
    """Starts of searches for minima beside those followed."""

    @abc.abstractmethod
    def __call__(self, radius: float) -> Iterable[Place]:
        """Starts at a radius."""


def follow(search: Search, radii: Sequence[float], starts: Starts) -> Iterator[Point]:
    """The lowest minimum found at every radius.

    A few minima are followed, for the lowest at one radius need not continue the lowest at the
    one before: at finite radius other tokens may win.

    Args:
        search: Finds local minima.
        radii: Increasing radii.
        starts: Further starts at every radius.
    """
    branches: list[Branch] = []
    before = np.inf
    for radius in radii:
        found = [(search(radius, b.predict(radius, search)), b) for b in branches]
        found += [(search(radius, start), Branch()) for start in starts(radius)]
        lowest = min(_order(point) for point, _ in found)
        # A larger ball holds what a smaller one does: nothing may be lost.
        if branches and lowest > before + _WORSE * (1 + abs(before)):
            found.append((search(radius, branches[0].stay(radius)), branches[0]))
        found = _distinct(sorted(found, key=lambda pair: _order(pair[0])))[:_KEPT]
        before = _order(found[0][0])
        branches = [branch.extended(radius, point.place) for point, branch in found]
        yield found[0][0]


def follow_down(
    search: Search, radii: Sequence[float], start: Place, tolerance: float
) -> list[Point]:
    """The local minimum that a direction leads to at the largest radius, and what it comes from.

    Args:
        search: Finds local minima.
        radii: Increasing radii.
        start: The direction.
        tolerance: Optimality at which a minimum is one.
    """
    branch, points = Branch(), []
    for radius in reversed(radii):
        places = [branch.predict(radius, search)] if branch.places else []
        found = []
        for place in [*places, start]:
            found.append(search(radius, place))
            if found[-1].optimality <= tolerance:
                break
        best = min(found, key=lambda point: (not np.isfinite(point.value), point.optimality))
        branch = branch.extended(radius, best.place)
        points.append(best)
    return points[::-1]


def unit(C: Float[np.ndarray, "p q"], search: Search) -> Float[np.ndarray, "p q"]:
    """The point in this direction on the edge of the ball; zero for zero."""
    size = search.norm(C)
    return C / size if size > 0 else C


def _distinct(found: list[tuple[Point, Branch]]) -> list[tuple[Point, Branch]]:
    """Minima that differ; of equal ones the lowest, with the longest branch."""
    kept: list[tuple[Point, Branch]] = []
    for point, branch in found:
        for number, (other, older) in enumerate(kept):
            if _near(point.place, other.place):
                if len(branch.places) > len(older.places):
                    kept[number] = (other, branch)
                break
        else:
            kept.append((point, branch))
    return kept


def _near(one: Place, other: Place) -> bool:
    return all(
        np.linalg.norm(a - b) <= _SAME * np.linalg.norm(b) for a, b in zip(one, other, strict=True)
    )


def _order(point: Point) -> float:
    return point.value if np.isfinite(point.value) else np.inf
