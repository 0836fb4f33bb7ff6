"""Where minima of the loss over a ball are looked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.attention.heads import Head, LinearHead
from attractor.attention.parameterization import KeyQuery, Parameterization
from attractor.errors import AttractorWarning
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, solve, solve_factorized
from attractor.selection import Selection, optimal_tokens
from attractor.tokens import Tokens
from attractor.training.paths.following import Place, Search, Starts, unit
from attractor.training.paths.survey import can_be_surveyed, lowest_places

_EXPLORED = 300.0
"""Size of scores up to which random starts are worth their time: beyond, attention of a random
matrix is saturated, and its gradient sees a single token."""


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
    tokens: Tokens,
    head: Head,
    geometry: Geometry,
    parameterization: Parameterization,
    selected: Selection | None,
    seed: int,
) -> Float[np.ndarray, "instances d e"]:
    """Solutions of the margin problems that paths tend to; NaN where there is none.

    With few columns of the factors it is a local solution, of the rank they allow.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        chosen = optimal_tokens(tokens, head) if selected is None else selected
        problem = MarginProblem.from_selection(tokens, chosen, ties="equal")
        width = bounded_width(parameterization, problem.shape)
        if width is None:
            solution: Any = solve(problem, geometry)
        else:
            solution = solve_factorized(problem, width, seed=seed)
    return np.reshape(solution.W, (-1, *problem.shape))


def bounded_width(parameterization: Parameterization, shape: tuple[int, int]) -> int | None:
    """Largest rank of W, if the parameterization bounds it below what the shape does."""
    inner = getattr(parameterization, "attention", parameterization)
    if not isinstance(inner, KeyQuery):
        return None
    width = inner.shapes(*shape)["K"][1]
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
    kept = np.take_along_axis(tokens.values[:, None], mask.argmax(-1)[..., None, None], axis=2)[
        :, :, 0
    ]
    rows = (tokens.labels[..., None] * kept).reshape(-1, kept.shape[-1])
    return solve(MarginProblem(rows, np.ones((len(rows), 1))), geometry).W[:, 0]
