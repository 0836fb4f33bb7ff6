"""The path of one trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.attention import Head, LinearHead, Loss, Parameterization
from attractor.attention.excess import TokenScores, token_scores
from attractor.attention.rows import Rows, attention_rows
from attractor.errors import TrialStatus
from attractor.geometry import Geometry
from attractor.precision import double_precision
from attractor.randomness import generator
from attractor.selection import Selection
from attractor.tokens import Tokens
from attractor.training.paths.balls import ball_of
from attractor.training.paths.fixed_head import FixedHead, FixedHeadData, FixedHeadSearch
from attractor.training.paths.following import Place, Point, Search, follow, follow_down, unit
from attractor.training.paths.joint import HeadLoss, JointData, JointLoss, JointSearch
from attractor.training.paths.measure import measure
from attractor.training.paths.score_map import ScoreMap, score_map
from attractor.training.paths.starts import (
    Directions,
    bounded_width,
    head_directions,
    margin_directions,
)

_STARTS = "regularization path"


class PathRecords(NamedTuple):
    """What is recorded of one path.

    Attributes:
        series: Every quantity, along the radius.
        status: A ``TrialStatus``.
        iterations: Newton steps.
    """

    series: dict[str, np.ndarray]
    status: TrialStatus
    iterations: int


@dataclass
class PathTrials:
    """The paths of all instances and seeds; gives any of them by its number.

    Attributes:
        tokens: The data sets.
        head: The head.
        geometry: The norm of W that bounds the path.
        layer: The parameterization.
        loss: The loss.
        radii: The radii.
        head_radii: Those of the head, where it is trained.
        selected: Tokens to be kept instead of the optimal ones.
        initial: Attention parameters to start from besides.
        seeds: Number of seeds.
        seed: The first of them.
        starts: Random starts at a radius.
        tolerance: Optimality up to which a point counts as stationary.
    """

    tokens: Tokens
    head: Head
    geometry: Geometry
    layer: Parameterization
    loss: Loss
    radii: Float[np.ndarray, "radius"]
    head_radii: Float[np.ndarray, "radius"] | None
    selected: Selection | None
    initial: dict[str, np.ndarray] | None
    seeds: int
    seed: int
    starts: int
    tolerance: float

    def __post_init__(self) -> None:
        """Solves the margin problems."""
        self._directions = margin_directions(
            self.tokens, self.head, self.geometry, self.layer, self.selected, self.seed
        )

    def __call__(self, number: int) -> PathRecords:
        """The path of one trial; called from several threads."""
        with double_precision():  # each thread has a setting of its own
            return self._path(number)

    def _path(self, number: int) -> PathRecords:
        instance, repeat = divmod(number, self.seeds)
        tokens, head = one_instance(self.tokens, self.head, instance)
        selected = None if self.selected is None else self.selected.mask
        if selected is not None and self.tokens.instances is not None:
            selected = selected[instance]
        rows = attention_rows(tokens)
        map = score_map(rows.keys, rows.queries, rows.mask, self.geometry)
        direction = self._directions[instance]
        width = bounded_width(self.layer, (map.left.shape[1], map.right.shape[1]))
        reach = float(np.linalg.norm(map.matrix, axis=-1).max(initial=0))
        search = self._search(rows, head, selected, map, width, reach)
        matrices = [direction]
        if self.initial is not None:
            arrays = {name: array[instance, repeat] for name, array in self.initial.items()}
            matrices.append(np.asarray(self.layer.effective_matrix(self.layer.from_arrays(arrays))))
        given = [
            place
            for W in matrices
            if np.isfinite(W).all()
            for place in self._given(tokens, head, map.project(W))
        ]
        if isinstance(search, FixedHeadSearch) and not has_choice(search.data.tokens):
            return self._records([_resting(map)] * len(self.radii), rows, head, map)
        given = [(unit(C, search), *rest) for C, *rest in given]
        if selected is not None and given:
            points = follow_down(search, self.radii.tolist(), given[0], self.tolerance)
            return self._records(points, rows, head, map)
        head_shape = (rows.values.shape[-1], 1)
        shapes = (map.shape,) if self.head_radii is None else (map.shape, head_shape)
        draws = generator(
            self.seed + repeat, int(self.tokens.instance_numbers[instance]), purpose=_STARTS
        )
        # Without a margin solution, or anything given, the search begins at random.
        count = self.starts if given else max(self.starts, 1)
        looked_for = Directions(given, search, shapes, count, draws, reach)
        return self._records(list(follow(search, self.radii.tolist(), looked_for)), rows, head, map)

    def _search(
        self,
        rows: Rows,
        head: Head,
        selected: np.ndarray | None,
        map: ScoreMap,
        width: int | None,
        reach: float,
    ) -> Search:
        ball = ball_of(self.geometry, map.shape, width)
        fixed = FixedHead(self.loss, ball)
        one = np.float64(1)
        if self.head_radii is None:
            scores = token_scores(head, rows, selected)
            data = FixedHeadData(map.matrix, rows.mask, scores, one)
            return FixedHeadSearch(fixed, self.geometry, width, data, reach)
        head_ball = ball_of(self.geometry, (rows.values.shape[-1], 1))
        size = len(ball.lift(np.zeros(map.shape), 0.1))
        return JointSearch(
            JointLoss(self.loss, ball, head_ball, size),
            fixed,
            HeadLoss(self.loss, head_ball),
            self.geometry,
            width,
            JointData(map.matrix, rows, one, one),
            dict(zip(self.radii.tolist(), self.head_radii.tolist(), strict=True)),
            reach,
        )

    def _given(self, tokens: Tokens, head: Head, C: np.ndarray) -> list[Place]:
        if isinstance(head, LinearHead) and self.head_radii is not None:
            return [(C, c) for c in head_directions(tokens, head, self.geometry)]
        return [(C,)]

    def _records(self, points: list[Point], rows: Rows, head: Head, map: ScoreMap) -> PathRecords:
        W = np.stack(
            [R * map.embed(point.place[0]) for R, point in zip(self.radii, points, strict=True)]
        )
        heads = head.for_instances(np.zeros(len(W), dtype=int)) if head.instances is None else head
        series: dict[str, np.ndarray] = {}
        if self.head_radii is not None:
            scaled = zip(self.head_radii, points, strict=True)
            heads = LinearHead(np.stack([r * point.place[1][:, 0] for r, point in scaled]))
            series["head_weight"] = np.asarray(heads.weight)
            series["log_loss"] = np.array([point.value for point in points])
        series["log_excess"] = np.array([point.log_excess for point in points])
        series["optimality"] = np.array([point.optimality for point in points])
        measured = measure(self.layer, self.loss, self.geometry, W, heads, rows)
        series |= {name: np.asarray(array) for name, array in measured.items()}
        reached = (series["optimality"] <= self.tolerance).all()
        status = TrialStatus.TRAINED if reached else TrialStatus.UNCONVERGED
        if not W.any():
            status = TrialStatus.STATIONARY
        return PathRecords(series, status, sum(point.iterations for point in points))


def one_instance(tokens: Tokens, head: Head, instance: int) -> tuple[Tokens, Head]:
    """One data set and its head."""
    if tokens.instances is None:
        return tokens, head
    return tokens[instance], head if head.instances is None else head.for_instances(instance)


def has_choice(tokens: TokenScores) -> bool:
    """Whether any token scores differently from those to be kept."""
    some = np.isfinite(np.asarray(tokens.log_lower)).any()
    higher = tokens.log_higher
    return bool(some or (higher is not None and np.isfinite(np.asarray(higher)).any()))


def _resting(map: ScoreMap) -> Point:
    """The path where every W is as good as any other: W = 0."""
    return Point((np.zeros(map.shape),), -np.inf, -np.inf, 0.0, 0)
