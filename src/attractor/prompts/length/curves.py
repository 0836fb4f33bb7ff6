"""The errors of finite prompts as functions of the length, by deviation of scores and by query."""

from __future__ import annotations

from math import factorial
from typing import Any, NamedTuple

import numpy as np
import scipy.interpolate
from jaxtyping import ArrayLike, Float, Int

from attractor.prompts.finite_length.functions import (
    LARGEST_DEVIATION,
    check_deviation,
    check_length,
    prompt_moments,
)
from attractor.prompts.finite_length.measure_errors import measure_output_error
from attractor.prompts.head import AttentionHead, output
from attractor.prompts.measures.contract import Convolution, Measure, Pushforward
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.mixture import Mixture
from attractor.prompts.measures.products import Product
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, check_shape

LARGEST_LENGTH = 1e12
"""The longest prompt considered."""

_PER_DECADE = 8
_LOG_LENGTHS = np.linspace(0, np.log(LARGEST_LENGTH), 12 * _PER_DECADE + 1)
_DEGREE = 5
_KNOTS = np.concatenate(
    [np.arange(0, 8, 1 / 8), np.arange(8, 16, 1 / 2), np.arange(16, LARGEST_DEVIATION + 1)]
)
_BISECTIONS = 50


class ErrorCurves(NamedTuple):
    """``E (ghat - s)^2`` and ``E sum_l p_l^2`` of each of some deviations ``s``, at every length.

    They are splines through the exact averages, in the logarithm of the length, and in ``s`` where
    there are more deviations than knots. The relative error is below 3e-6 up to ``LARGEST_LENGTH``.

    Attributes:
        score_deviation: The deviations, one row of them.
        coefficients: Of polynomials in the logarithm of the length, for those of the two averages,
            highest degree first.
    """

    score_deviation: Float[np.ndarray, "query"]
    coefficients: Float[np.ndarray, "6 piece query 2"]

    @classmethod
    def of(cls, score_deviation: Float[ArrayLike, "query"]) -> ErrorCurves:
        """Computes the curves.

        Args:
            score_deviation: Deviations from 0 to 32.

        Raises:
            InvalidInputError: If one is outside.
        """
        s = np.atleast_1d(check_deviation(score_deviation))
        different, place = np.unique(s, return_inverse=True)
        most = np.searchsorted(_KNOTS, different.max(initial=0)) + _DEGREE
        knots = _KNOTS[: most + 1]
        if len(different) <= len(knots):
            logarithms = _exact(different)[place]
        else:  # even in s, so that the spline is that of both sides
            exact = _exact(knots)
            both = np.concatenate([exact[:0:-1], exact])
            sides = np.concatenate([-knots[:0:-1], knots])
            logarithms = scipy.interpolate.make_interp_spline(sides, both, k=_DEGREE)(s)
        along_lengths = np.moveaxis(logarithms, 1, 0)
        spline = scipy.interpolate.make_interp_spline(_LOG_LENGTHS, along_lengths, k=_DEGREE)
        derivatives = [
            spline(_LOG_LENGTHS[:-1], order) / factorial(order) for order in range(_DEGREE, -1, -1)
        ]
        return cls(s, np.stack(derivatives))

    def at(
        self, lengths: Float[ArrayLike, "length"]
    ) -> tuple[Float[np.ndarray, "query length"], Float[np.ndarray, "query length"]]:
        """Both averages of every deviation at every one of some lengths.

        Raises:
            InvalidInputError: If a length is not in [1, ``LARGEST_LENGTH``].
        """
        lengths = within_reach(lengths)
        error, weights = self._values(np.log(lengths)[:, None])
        return error.T, weights.T

    def length_for(
        self,
        along: Float[np.ndarray, "query"],
        across: Float[np.ndarray, "query"],
        square: Float[np.ndarray, "query"],
    ) -> Float[np.ndarray, "query"]:
        """The lengths at which ``along E (ghat - s)^2 + across E sum_l p_l^2`` falls to ``square``.

        Both averages fall with the length. One is the answer where the error is less at any
        length, and infinity where it is more up to ``LARGEST_LENGTH``.
        """
        low = np.zeros_like(square)
        high = np.full_like(square, _LOG_LENGTHS[-1])
        unreached = self._error(high, along, across) > square
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            above = self._error(middle, along, across) > square
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        at_once = self._error(np.zeros_like(square), along, across) <= square
        return np.where(unreached, np.inf, np.where(at_once, 1.0, np.exp(high)))

    def _error(
        self,
        log_length: Float[np.ndarray, "query"],
        along: Float[np.ndarray, "query"],
        across: Float[np.ndarray, "query"],
    ) -> Float[np.ndarray, "query"]:
        """The error of each deviation at a length of its own."""
        error, weights = self._values(log_length)
        return along * error + across * weights

    def _values(
        self, log_length: Float[np.ndarray, "*length #query"]
    ) -> tuple[Float[np.ndarray, "*length query"], Float[np.ndarray, "*length query"]]:
        """Both averages; lengths broadcast against queries."""
        piece = np.clip((log_length / _LOG_LENGTHS[1]).astype(int), 0, len(_LOG_LENGTHS) - 2)
        query = np.arange(len(self.score_deviation))
        local = (log_length - _LOG_LENGTHS[piece])[..., None]
        value = self.coefficients[0, piece, query]
        for coefficient in self.coefficients[1:]:
            value = value * local + coefficient[piece, query]
        values = np.exp(value)
        return values[..., 0], values[..., 1]


def within_reach(lengths: ArrayLike | Any) -> Float[np.ndarray, "length"]:
    """Returns lengths of prompts as float64, one axis of them.

    Raises:
        InvalidInputError: If a length is not in [1, ``LARGEST_LENGTH``], or there are more axes.
    """
    found = np.atleast_1d(check_length(lengths, "lengths"))
    check_shape("lengths", found.shape, ("length",))
    if (found > LARGEST_LENGTH).any():
        raise InvalidInputError(
            "lengths",
            f"{found.max():.6g} is beyond {LARGEST_LENGTH:g}",
            "Give the length of a prompt",
        )
    return found


def _exact(s: Float[np.ndarray, "query"]) -> Float[np.ndarray, "query length 2"]:
    moments = prompt_moments(s[:, None], np.exp(_LOG_LENGTHS))
    return np.stack([np.log(moments.output_error), np.log(moments.sum_of_squared_weights)], axis=-1)


_GRID_PER_DECADE = 16
_GRID = np.unique(np.round(np.geomspace(1, LARGEST_LENGTH, 12 * _GRID_PER_DECADE + 1)))
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
