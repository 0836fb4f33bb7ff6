"""The local path of one data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.attention import Head, Loss, Parameterization
from attractor.attention.excess import token_scores
from attractor.attention.rows import attention_rows
from attractor.errors import TrialStatus
from attractor.geometry import Frobenius
from attractor.precision import double_precision
from attractor.randomness import generator
from attractor.selection import attended_tokens
from attractor.tokens import Tokens
from attractor.training.paths.balls import RoundBall
from attractor.training.paths.cone import (
    ConeCoordinates,
    ConeData,
    ConeLoss,
    ConeSearch,
    cone_coordinates,
    point_of_cone,
)
from attractor.training.paths.following import Place, Point, Starts, follow
from attractor.training.paths.measure import measure
from attractor.training.paths.score_map import score_map
from attractor.training.paths.survey import can_be_surveyed, lowest_places
from attractor.training.paths.trial import PathRecords, has_choice, one_instance

_STARTS = "local regularization path"
_AT_EDGE = 1e-6
"""Distance from the edge of the cone, relative to its angle, that is none."""
_NEAR_AXIS = 1e-3
"""How far off the axis to start as well, so that a search need not begin at a saddle point."""


@dataclass(frozen=True)
class LocalTrials:
    """The local paths of all instances; gives any of them by its number.

    Attributes:
        tokens: The data sets.
        head: The head.
        layer: The parameterization.
        loss: The loss.
        radii: The radii.
        directions: The direction of each cone.
        opening: One less the cosine of its largest angle.
        seed: Names the random starts.
        starts: Random starts at a radius.
        tolerance: Optimality up to which a point counts as stationary.
    """

    tokens: Tokens
    head: Head
    layer: Parameterization
    loss: Loss
    radii: Float[np.ndarray, "radius"]
    directions: Float[np.ndarray, "instance d e"]
    opening: float
    seed: int
    starts: int
    tolerance: float

    def __call__(self, number: int) -> PathRecords:
        """The path of one instance; called from several threads."""
        with double_precision():  # each thread has a setting of its own
            return self._path(number)

    def _path(self, number: int) -> PathRecords:
        tokens, head = one_instance(self.tokens, self.head, number)
        direction = self.directions[number]
        rows = attention_rows(tokens)
        map = score_map(rows.keys, rows.queries, rows.mask, Frobenius())
        coordinates = cone_coordinates(map, direction)
        selected = attended_tokens(tokens, direction).mask
        sine = np.sqrt(self.opening * (2 - self.opening))
        data = ConeData(
            coordinates.matrix, rows.mask, token_scores(head, rows, selected), np.float64(1),
            coordinates.axis, coordinates.tangent, np.float64(sine),
        )  # fmt: skip
        shape = (coordinates.tangent.shape[1], 1)
        reach = sine * float(np.linalg.norm(map.matrix, axis=-1).max(initial=0))
        search = ConeSearch(ConeLoss(self.loss, RoundBall(shape)), data, reach)
        if shape[0] and has_choice(data.tokens):  # else the cone is a ray, or every W as good
            draws = generator(self.seed, int(self.tokens.instance_numbers[number]), purpose=_STARTS)
            looked_for = _ConeStarts(search, shape, self.starts, draws)
            points = list(follow(search, self.radii.tolist(), looked_for))
        else:
            at_axis = Point((np.zeros(shape),), -np.inf, -np.inf, 0.0, 0)
            points = [at_axis] * len(self.radii)
        W = _matrices(points, self.radii, data, coordinates, direction.shape)
        heads = head.for_instances(np.zeros(len(W), dtype=int)) if head.instances is None else head
        measured = measure(self.layer, self.loss, Frobenius(), W, heads, rows)
        series = {name: np.asarray(array) for name, array in measured.items()}
        series |= _measures_of_cone(points, sine)
        pairs = zip(self.radii.tolist(), points, strict=True)
        compared = [search.log_differences(R, point.place) for R, point in pairs]
        series["log_excess"], series["log_deficit"] = np.array(compared).T
        reached = (series["optimality"] <= self.tolerance).all()
        status = TrialStatus.TRAINED if reached else TrialStatus.UNCONVERGED
        return PathRecords(series, status, sum(point.iterations for point in points))


@dataclass
class _ConeStarts(Starts):
    """The axis, near it, all over a cone of few coordinates, and at random places of its edge."""

    search: ConeSearch
    shape: tuple[int, int]
    count: int
    generator: np.random.Generator

    def __call__(self, radius: float) -> Iterator[Place]:
        """Starts at a radius."""
        yield (np.zeros(self.shape),)
        if can_be_surveyed((self.shape,)):
            yield from lowest_places(self.search, radius, (self.shape,), self.search.reach)
        for number in range(self.count):
            b = self.generator.standard_normal(self.shape)
            size = _NEAR_AXIS if number == 0 else 1.0
            yield (size * b / max(np.linalg.norm(b), np.finfo(float).tiny),)


def _matrices(
    points: list[Point],
    radii: Float[np.ndarray, "radius"],
    data: ConeData,
    coordinates: ConeCoordinates,
    shape: tuple[int, ...],
) -> Float[np.ndarray, "radius d e"]:
    units = [np.asarray(point_of_cone(point.place[0], data)) for point in points]
    return np.stack(
        [R * (coordinates.basis @ C).reshape(shape) for R, C in zip(radii, units, strict=True)]
    )


def _measures_of_cone(points: list[Point], sine: float) -> dict[str, np.ndarray]:
    """Where the minimizers lie in the cone."""
    across = np.array([np.linalg.norm(point.place[0]) for point in points])
    return {
        "optimality": np.array([point.optimality for point in points]),
        "angle": np.arcsin(np.minimum(sine * across, 1.0)),
        "at_edge": across >= 1 - _AT_EDGE,
    }
