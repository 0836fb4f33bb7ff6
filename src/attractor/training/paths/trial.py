"""The path of one trial."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from attractor.attention import Head, KeyQuery, LinearHead, Parameterization
from attractor.attention.excess import TokenScores, token_scores
from attractor.attention.heads import is_linear
from attractor.attention.parameterization import attention_layer
from attractor.attention.rows import Rows, attention_rows
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, solve, solve_factorized
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.errors import AttractorWarning, TrialStatus
from attractor.support.precision import double_precision
from attractor.support.progress import progress_bar
from attractor.support.randomness import generator
from attractor.support.threads import in_threads
from attractor.tokens import Tokens
from attractor.training.inputs import Inputs
from attractor.training.measurements import Records
from attractor.training.paths.balls import ball_of
from attractor.training.paths.fixed_head import (
    FixedHead,
    FixedHeadData,
    FixedHeadSearch,
    NonlinearHead,
    NonlinearHeadData,
)
from attractor.training.paths.following import (
    Place,
    Point,
    Search,
    Starts,
    follow,
    follow_down,
    unit,
)
from attractor.training.paths.joint import HeadLoss, JointData, JointLoss, JointSearch
from attractor.training.paths.measure import measure
from attractor.training.paths.score_map import ScoreMap, score_map
from attractor.training.paths.survey import can_be_surveyed, lowest_places

_STARTS = "regularization path"
_EXPLORED = 300.0
"""Size of scores up to which random starts are worth their time: beyond, attention of a random
matrix is saturated, and its gradient sees a single token."""


class PathRecords(NamedTuple):
    """The records of one path.

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
    """The paths of all instances and seeds; returns any of them by its number.

    Attributes:
        inputs: Data sets, model and attention parameters to start from besides.
        geometry: The norm of W that bounds the path.
        radii: The radii.
        head_radii: Those of the head, where it is trained.
        selected: Tokens to be kept instead of the optimal ones.
        starts: Random starts at a radius.
        tolerance: Optimality up to which a point counts as stationary.
    """

    inputs: Inputs
    geometry: Geometry
    radii: Float[np.ndarray, "radius"]
    head_radii: Float[np.ndarray, "radius"] | None
    selected: Selection | None
    starts: int
    tolerance: float

    def __post_init__(self) -> None:
        """Solves the margin problems."""
        self._directions = margin_directions(self.inputs, self.geometry, self.selected)

    def __call__(self, number: int) -> PathRecords:
        """The path of one trial; called from several threads."""
        with double_precision():  # each thread has a setting of its own
            return self._path(number)

    def _path(self, number: int) -> PathRecords:
        inputs, layer = self.inputs, self.inputs.parameterization
        instance, repeat = divmod(number, inputs.seeds)
        tokens, head = one_instance(inputs, instance)
        selected = None if self.selected is None else self.selected.mask
        if selected is not None and inputs.tokens.instances is not None:
            selected = selected[instance]
        rows = attention_rows(tokens)
        map = score_map(rows.keys, rows.queries, rows.mask, self.geometry)
        direction = self._directions[instance]
        width = bounded_width(layer, (map.left.shape[1], map.right.shape[1]))
        reach = float(np.linalg.norm(map.matrix, axis=-1).max(initial=0))
        search = self._search(rows, head, selected, map, width, reach)
        matrices = [direction]
        if inputs.initial is not None:
            arrays = {name: array[instance, repeat] for name, array in inputs.initial.items()}
            matrices.append(np.asarray(layer.effective_matrix(layer.from_arrays(arrays))))
        heads: list[tuple[np.ndarray, ...]] = [()]
        if isinstance(head, LinearHead) and self.head_radii is not None:
            heads = [(c,) for c in head_directions(tokens, head, self.geometry)]
        given = [(map.project(W), *c) for W in matrices if np.isfinite(W).all() for c in heads]
        if isinstance(search, FixedHeadSearch) and not has_choice(search.data.tokens):
            return self._records([flat_point(map.shape)] * len(self.radii), rows, head, map)
        given = [(unit(C, search), *rest) for C, *rest in given]
        if selected is not None and given:
            points = follow_down(search, self.radii.tolist(), given[0], self.tolerance)
            return self._records(points, rows, head, map)
        head_shape = (rows.values.shape[-1], 1)
        shapes = (map.shape,) if self.head_radii is None else (map.shape, head_shape)
        draws = generator(
            inputs.seed + repeat, int(inputs.tokens.instance_numbers[instance]), purpose=_STARTS
        )
        # Without a margin solution, or anything given, the search begins at random.
        count = self.starts if given else max(self.starts, 1)
        starts = Directions(given, search, shapes, count, draws, reach)
        return self._records(list(follow(search, self.radii.tolist(), starts)), rows, head, map)

    def _search(
        self,
        rows: Rows,
        head: Head,
        selected: np.ndarray | None,
        map: ScoreMap,
        width: int | None,
        reach: float,
    ) -> Search:
        ball, loss = ball_of(self.geometry, map.shape, width), self.inputs.loss
        fixed = FixedHead(loss, ball)
        one = np.float64(1)
        if self.head_radii is None:
            scores = token_scores(head, rows, selected)
            if is_linear(head):
                data = FixedHeadData(map.matrix, rows.mask, scores, one)
                return FixedHeadSearch(fixed, self.geometry, width, data, reach)
            best = rows.mask & np.isneginf(np.asarray(scores.log_lower))
            other = NonlinearHeadData(map.matrix, rows, head, best, scores, one)
            return FixedHeadSearch(NonlinearHead(loss, ball), self.geometry, width, other, reach)
        head_ball = ball_of(self.geometry, (rows.values.shape[-1], 1))
        size = len(ball.lift(np.zeros(map.shape), 0.1))
        return JointSearch(
            JointLoss(loss, ball, head_ball, size),
            fixed,
            HeadLoss(loss, head_ball),
            self.geometry,
            width,
            JointData(map.matrix, rows, one, one),
            dict(zip(self.radii.tolist(), self.head_radii.tolist(), strict=True)),
            reach,
        )

    def _records(self, points: list[Point], rows: Rows, head: Head, map: ScoreMap) -> PathRecords:
        W = np.stack(
            [R * map.embed(point.place[0]) for R, point in zip(self.radii, points, strict=True)]
        )
        series: dict[str, np.ndarray] = {}
        if self.head_radii is not None:
            scaled = zip(self.head_radii, points, strict=True)
            head = LinearHead(np.stack([r * point.place[1][:, 0] for r, point in scaled]))
            series["head_weight"] = np.asarray(head.weight)
            series["log_loss"] = np.array([point.value for point in points])
        series["log_excess"] = np.array([point.log_excess for point in points])
        series["optimality"] = np.array([point.optimality for point in points])
        inputs = self.inputs
        series |= measure(inputs.parameterization, inputs.loss, self.geometry, W, head, rows)
        found = path_records(series, points, self.tolerance)
        return found if W.any() else found._replace(status=TrialStatus.STATIONARY)


def path_records(
    series: dict[str, np.ndarray], points: list[Point], tolerance: float
) -> PathRecords:
    """The records of a path; it has converged where every point is stationary to the tolerance."""
    reached = (series["optimality"] <= tolerance).all()
    status = TrialStatus.TRAINED if reached else TrialStatus.UNCONVERGED
    return PathRecords(series, status, sum(point.iterations for point in points))


def follow_all(
    trials: Callable[[int], PathRecords], count: int, description: str, progress: bool
) -> Records:
    """The records of all paths, computed in threads.

    Args:
        trials: Returns the path of a number.
        count: How many there are.
        description: Words for the progress bar.
        progress: Whether to show it.
    """
    found: list[Any] = [None] * count
    with progress_bar(description, count, enabled=progress) as advance:
        for number, path in in_threads(trials, range(count)):
            found[number] = path
            advance(1)
    return Records(
        {name: np.stack([path.series[name] for path in found]) for name in found[0].series},
        np.array([path.status for path in found], dtype=np.int32),
        np.array([path.iterations for path in found]),
    )


def one_instance(inputs: Inputs, instance: int) -> tuple[Tokens, Head]:
    """One data set and its head."""
    tokens, head = inputs.tokens, inputs.head
    if tokens.instances is None:
        return tokens, head
    return tokens[instance], head if head.instances is None else head.for_instances(instance)


def has_choice(tokens: TokenScores) -> bool:
    """Whether any token scores differently from those to be kept."""
    some = np.isfinite(np.asarray(tokens.log_lower)).any()
    higher = tokens.log_higher
    return bool(some or (higher is not None and np.isfinite(np.asarray(higher)).any()))


def flat_point(shape: tuple[int, int]) -> Point:
    """The point at zero, taken where the loss does not depend on the coordinates."""
    return Point((np.zeros(shape),), -np.inf, -np.inf, 0.0, 0)


@dataclass
class Directions(Starts):
    """Given directions at every radius, random ones as long as scores are of ordinary size.

    Balls of one or two coordinates are looked over everywhere, at every radius.

    Attributes:
        given: Starts at every radius.
        search: What they are for.
        shapes: Shapes of what is to be drawn, W first.
        count: Random starts at a radius.
        generator: Draws them.
        reach: Largest score for W of norm one.
    """

    given: list[Place]
    search: Search
    shapes: tuple[tuple[int, ...], ...]
    count: int
    generator: np.random.Generator
    reach: float

    def __call__(self, radius: float) -> Iterator[Place]:
        """Starts at a radius."""
        yield from self.given
        if can_be_surveyed(self.shapes):
            yield from lowest_places(self.search, radius, self.shapes, self.reach)
        if radius * self.reach > _EXPLORED and self.given:
            return
        # The first one is small: there attention sees all tokens, and minima inside are near.
        sizes = [min(1.0, 1 / max(radius * self.reach, 1.0))] + [1.0] * (self.count - 1)
        for size in sizes[: self.count]:
            C, *rest = (self.generator.standard_normal(shape) for shape in self.shapes)
            yield size * unit(C, self.search), *(c / np.linalg.norm(c) for c in rest)


def margin_directions(
    inputs: Inputs, geometry: Geometry, selected: Selection | None
) -> Float[np.ndarray, "instances d e"]:
    """Solutions of the margin problems that paths tend to; NaN where there is none.

    With few columns of the factors it is a local solution, of the rank they allow.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        chosen = optimal_tokens(inputs.tokens, inputs.head) if selected is None else selected
        problem = MarginProblem.from_selection(inputs.tokens, chosen, ties="equal")
        width = bounded_width(inputs.parameterization, problem.shape)
        if width is None:
            solution: Any = solve(problem, geometry)
        else:
            solution = solve_factorized(problem, width, seed=inputs.seed)
    return np.reshape(solution.W, (-1, *problem.shape))


def bounded_width(parameterization: Parameterization, shape: tuple[int, int]) -> int | None:
    """Largest rank of W, if the parameterization bounds it below what the shape does."""
    layer = attention_layer(parameterization)
    if not isinstance(layer, KeyQuery):
        return None
    width = layer.shapes(*shape)["K"][1]
    return width if width < min(shape) else None


def head_directions(
    tokens: Tokens, head: LinearHead, geometry: Geometry
) -> list[Float[np.ndarray, "v 1"]]:
    """Heads to start from: the one given, and the one that separates the tokens it prefers.

    The second is the solution of the label margin problem ``y_i v^T x_i >= 1`` for the tokens of
    highest score under the first.
    """
    given = np.asarray(head.weight, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        best = optimal_tokens(tokens, head)
    heads = [given, _label_direction(tokens, best.mask, geometry)]
    return [
        v[:, None] / float(geometry.norm(v[:, None]))
        for v in heads
        if np.isfinite(v).all() and v.any()
    ]


def _label_direction(
    tokens: Tokens, mask: Bool[np.ndarray, "sequence query token"], geometry: Geometry
) -> Float[np.ndarray, "v"]:
    assert tokens.labels is not None
    chosen = mask.argmax(-1)[..., None, None]
    kept = np.take_along_axis(tokens.values[:, None], chosen, axis=2)[:, :, 0]
    rows = (tokens.labels[..., None] * kept).reshape(-1, kept.shape[-1])
    return solve(MarginProblem(rows, np.ones((len(rows), 1))), geometry).W[:, 0]
