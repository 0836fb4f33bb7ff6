"""What a finite prompt adds to the risk of heads along one matrix, by the deviation of scores."""

from __future__ import annotations

import abc
import functools
import math
from typing import NamedTuple

import numpy as np
import scipy.interpolate
from jaxtyping import Float

from attractor.prompts.finite_length.averages import interpolated_averages
from attractor.prompts.finite_length.functions import prompt_moments
from attractor.prompts.finite_length.table import error_table, spline_values
from attractor.prompts.finite_length.two_heads import along_scores, two_head_moments
from attractor.prompts.regression.risks.finite_softmax import LARGEST_TABLE
from attractor.support.errors import InvalidInputError

_SPACING, _BEYOND, _DEGREE = 1 / 16, 6, 5
_LARGEST_OF_TWO = 11.0  # tables go on beyond it, to the largest deviation of a pair


class Averages(NamedTuple):
    """Averages over prompts at some deviations ``s``; all vanish on long prompts.

    With ``a = A x_q`` and a prediction that is ``b x_q^T A^T S w`` on infinite
    prompts, a finite length adds to twice the risk ``E[b^2 (t |S a|^2 along + (t tr S + n) shared)
    + 2 b t a^T S x_q pull]``.

    Attributes:
        shared: What noise and the mean of the prompt are multiplied by.
        pull: By which share of ``S a`` an attended mean falls short.
        along: The squared error along the scores, less twice the pull.
    """

    shared: Float[np.ndarray, "node"]
    pull: Float[np.ndarray, "node"]
    along: Float[np.ndarray, "node"]


class PromptAverages(abc.ABC):
    """Splines through exact averages over prompts of one length, made as far as they are needed."""

    def __init__(self, length: float) -> None:
        """Computes nothing yet.

        Args:
            length: Number of tokens of a prompt, or infinity.
        """
        self.length = float(length)

    @abc.abstractmethod
    def at(self, deviations: Float[np.ndarray, "node"]) -> Averages:
        """The averages at some deviations, the largest of them last."""


class OneHead(PromptAverages):
    """One head: ``shared = pull = E sum_l p_l^2``. Its scores may be however wide."""

    def at(self, deviations: Float[np.ndarray, "node"]) -> Averages:
        """The averages at some deviations, the largest of them last."""
        near = deviations <= LARGEST_TABLE
        q, along = np.empty((2, len(deviations)))
        if near.any():
            # Tables to larger deviations cost the more the larger these are.
            reach = max(float(deviations[near][-1]), 2.0)
            table = _one_head(self.length, min(2.0 ** math.ceil(math.log2(reach)), LARGEST_TABLE))
            log_weights, squared_gain = spline_values(table, deviations[near])[1:3]
            q[near], along[near] = np.exp(log_weights), squared_gain - 1
        if not near.all():
            lengths = np.array([self.length])
            beyond = interpolated_averages(lengths, LARGEST_TABLE, math.inf, deviations[~near])
            q[~near], along[~near] = beyond[0, :, 0], beyond[1, :, 0] - 2 * beyond[0, :, 0]
        return Averages(q, q, along)


class OppositeHeads(PromptAverages):
    """The heads ``(A, b / 2)`` and ``(-A, -b / 2)``, which share noise as ``q - q'`` halved.

    Here ``q'`` is ``E sum_l p_l p'_l`` of the two, and ``q`` that of one; the pull is ``q``.
    """

    def at(self, deviations: Float[np.ndarray, "node"]) -> Averages:
        """The averages at some deviations, the largest of them last.

        Raises:
            InvalidInputError: If the largest is beyond 11.
        """
        largest = float(deviations[-1])
        if not largest <= _LARGEST_OF_TWO:
            raise InvalidInputError(
                "initial",
                f"scores from it reach standard deviation {largest:.3g}, where one token takes all "
                "attention",
                f"Give a start whose scores stay below {_LARGEST_OF_TWO:g}",
            )
        intervals = max(1, math.ceil(math.asinh(largest) / _SPACING))
        shared, pull, along = _opposite_heads(self.length, intervals)(np.arcsinh(deviations))
        return Averages(deviations**2 * shared, pull, along)


_one_head = functools.lru_cache(maxsize=64)(error_table)


@functools.lru_cache(maxsize=64)
def _opposite_heads(length: float, intervals: int) -> scipy.interpolate.BSpline:
    """Splines of even functions of ``s`` in the variable ``arsinh s``.

    Far out they vary on the scale of ``s``.
    """
    knots = _SPACING * np.arange(1, intervals + _BEYOND)
    values = np.stack([_opposite_at(length, knot) for knot in np.sinh(knots)], axis=1)
    knots, both = (
        np.concatenate([-knots[::-1], knots]),
        np.concatenate([values[:, ::-1], values], 1),
    )
    return scipy.interpolate.make_interp_spline(knots, both, k=_DEGREE, axis=1)


@functools.lru_cache(maxsize=4096)
def _opposite_at(length: float, s: float) -> Float[np.ndarray, "3"]:
    """The averages at one deviation, the first of which is as small as ``s^2``, over that."""
    alone = prompt_moments(s, length)
    opposite = np.array([[1.0, -1.0], [-1.0, 1.0]])
    pair = two_head_moments(s**2 * opposite, length)
    q = alone.sum_of_squared_weights
    along = (alone.error_per_variance - along_scores(pair, opposite)) / 2 - 2 * q
    return np.stack([(q - pair.shared) / 2 / s**2, q, along])
