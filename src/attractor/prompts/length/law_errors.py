"""The error of finite prompts of tokens of a law itself, for some queries, at every length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.interpolate
from jaxtyping import ArrayLike, Float, Int

from attractor.prompts.finite_length.measure_errors import measure_output_error
from attractor.prompts.head import AttentionHead
from attractor.prompts.length.curves import LARGEST_LENGTH, within_reach
from attractor.prompts.measures.contract import Convolution, Measure, Pushforward
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.mixture import Mixture
from attractor.prompts.measures.products import Product
from attractor.prompts.operator import output
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

_PER_DECADE = 16
_GRID = np.unique(np.round(np.geomspace(1, LARGEST_LENGTH, 12 * _PER_DECADE + 1)))
_DEGREE = 5
_BISECTIONS = 50
_MOST, _FEWEST = 32, 3
"""Queries whose errors are computed."""
_COST = 300
"""Parts of laws of all queries, each about a hundredth of a second."""
_POINTS = 50
"""Points that take as long as another part of a law."""
_TINY = 1e-300


class LawErrors(NamedTuple):
    """Exact errors of the output over prompts of independent tokens of a law that is not Gaussian.

    They are root-mean-square errors toward the output over infinitely many tokens of the same law,
    relative to its norm. Between computed lengths they are splines in the logarithm of the length,
    with a relative error below 1e-5.

    Attributes:
        query: Numbers of the queries: spread over all score deviations, less those refused.
        refused: How many of them were left out, as no formula reaches them.
        output: Norms of the outputs over infinitely many tokens.
        square: Expected squared errors at the lengths of a grid up to 1e12.
    """

    query: Int[np.ndarray, "chosen"]
    refused: int
    output: Float[np.ndarray, "chosen"]
    square: Float[np.ndarray, "chosen grid"]

    def errors_at(self, lengths: Float[ArrayLike, "length"]) -> Float[np.ndarray, "chosen length"]:
        """The errors at lengths up to 1e12; infinite beside an output of zero.

        Raises:
            InvalidInputError: If a length is outside.
        """
        return self._relative(self._spline()(np.log(within_reach(lengths))).T)

    def length_for(self, errors: Float[ArrayLike, "wanted"]) -> Float[np.ndarray, "chosen wanted"]:
        """The lengths from which on the errors stay below wanted ones; infinite beyond 1e12.

        An error need not fall all the way: tokens so rare that few prompts have one can undo what
        more of the others gain.
        """
        wanted = np.atleast_1d(as_float64("errors", errors))
        spline, grid = self._spline(), np.log(_GRID)
        above = self._relative(spline(grid).T)[:, None] > wanted[:, None]
        # The last length of the grid with more than the error, and the next one, with less.
        last = len(grid) - 1 - above[..., ::-1].argmax(-1)
        low, high = grid[last], grid[np.minimum(last + 1, len(grid) - 1)]
        every = np.arange(len(self.query))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            more = self._relative(spline(middle)[every, :, every]) > wanted
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        found = np.where(above.any(-1), np.exp(high), 1.0)
        return np.where(above[..., -1], np.inf, found)

    def _spline(self) -> scipy.interpolate.BSpline:
        """Logarithms of the squared errors, in the logarithm of the length."""
        logarithms = np.log(np.maximum(self.square.T, _TINY))
        return scipy.interpolate.make_interp_spline(np.log(_GRID), logarithms, k=_DEGREE)

    def _relative(
        self, logarithm: Float[np.ndarray, "chosen length"]
    ) -> Float[np.ndarray, "chosen length"]:
        with np.errstate(divide="ignore"):
            return np.exp(logarithm / 2) / self.output[:, None]


def law_errors(
    head: AttentionHead,
    law: Measure,
    queries: Float[np.ndarray, "query e"],
    score_deviation: Float[np.ndarray, "query"],
) -> LawErrors | None:
    """Computes the errors for as many queries as take a few seconds.

    Args:
        head: The head.
        law: The law of the tokens.
        queries: The queries.
        score_deviation: Their score deviations.

    Returns:
        The errors, or None where no formula reaches any query.
    """
    count = int(np.clip(_COST / _parts(law), _FEWEST, _MOST))
    kept, squares = [], []
    chosen = spread_over(score_deviation, count)
    for place in chosen:
        try:
            squares.append(measure_output_error(law, head, queries[place], _GRID))
        except InvalidInputError:  # of a law without formula, or scores that spread too widely
            continue
        kept.append(place)
    if not kept:
        return None
    norms = np.linalg.norm(np.asarray(output(law, head, queries[kept])), axis=-1)
    return LawErrors(np.array(kept), len(chosen) - len(kept), norms, np.stack(squares))


def _parts(law: Measure) -> float:
    """How long a query takes, in parts of a law."""
    match law:
        case Empirical():
            return 1 + law.points.shape[-2] / _POINTS
        case Mixture():
            return sum(map(_parts, law.components))
        case Product():
            return sum(map(_parts, law.factors))
        case Convolution():
            return _parts(law.first) + _parts(law.second)
        case Pushforward():
            return _parts(law.source)
    return 1


def spread_over(values: Float[np.ndarray, "query"], count: int) -> Int[np.ndarray, "chosen"]:
    """Places of so many values, all if they are fewer, at ranks in the middle of equal shares."""
    order = np.argsort(values, kind="stable")
    count = min(count, len(values))
    return order[((np.arange(count) + 0.5) * len(values) / count).astype(int)]
