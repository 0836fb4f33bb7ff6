"""The averages over finite prompts of many score deviations, as functions of the length."""

from __future__ import annotations

from math import factorial
from typing import Any, NamedTuple

import numpy as np
import scipy.interpolate
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import (
    LARGEST_DEVIATION,
    check_deviation,
    check_length,
    prompt_moments,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import check_shape

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
