"""What a finite prompt adds to the risk of heads along one matrix, by the deviation of scores."""

from __future__ import annotations

import abc
import functools
import math
from typing import NamedTuple

import numpy as np
import scipy.interpolate
from jaxtyping import Float

from attractor.errors import InvalidInputError
from attractor.prompt.finite_length.functions import prompt_moments
from attractor.prompt.finite_length.table import error_table, spline_values
from attractor.prompt.finite_length.two_heads import LARGEST_PAIR_DEVIATION, two_head_moments
from attractor.prompt.regression.finite_softmax import LARGEST_TABLE

_TABLE_STEP = 2.0  # tables to larger deviations cost the more the larger these are
_KNOTS_PER_UNIT, _BEYOND, _DEGREE = 16, 6, 5


class Averages(NamedTuple):
    """Averages over prompts at some deviations ``s``; all vanish on long prompts.

    With ``F = b S A - I``, ``a = A x_q`` and a prediction that is ``b x_q^T A^T S w`` on infinite
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
    """Splines through exact averages over prompts of one length, made as far as they are needed.

    Attributes:
        heads: Number of heads, of equal size.
        most: The largest deviation of scores.
    """

    heads: int
    most: float

    def __init__(self, length: float) -> None:
        """Computes nothing yet.

        Args:
            length: Number of tokens of a prompt, or infinity.
        """
        self.length = float(length)

    def at(self, deviations: Float[np.ndarray, "node"]) -> Averages:
        """The averages at some deviations, the largest of them last.

        Raises:
            InvalidInputError: If the largest is beyond ``most``.
        """
        largest = float(deviations[-1])
        if not largest <= self.most:
            raise InvalidInputError(
                "initial",
                f"scores from it reach standard deviation {largest:.3g}, where one token takes all "
                "attention",
                f"Give a start whose scores stay below {self.most:g}",
            )
        steps = max(1, math.ceil(largest / _TABLE_STEP))
        return self.within(min(steps * _TABLE_STEP, self.most), deviations)

    @abc.abstractmethod
    def within(self, largest: float, deviations: Float[np.ndarray, "node"]) -> Averages:
        """The averages at deviations up to one for which a table is made."""


class OneHead(PromptAverages):
    """One head: ``shared = pull = E sum_l p_l^2``."""

    heads, most = 1, LARGEST_TABLE

    def within(self, largest: float, deviations: Float[np.ndarray, "node"]) -> Averages:
        """The averages at deviations up to one for which a table is made."""
        table = _one_head(self.length, largest)
        log_weights, squared_gain = spline_values(table, deviations)[1:3]
        q = np.exp(log_weights)
        return Averages(q, q, squared_gain - 1)


class OppositeHeads(PromptAverages):
    """The heads ``(A, b / 2)`` and ``(-A, -b / 2)``, which share noise as ``q - q'`` halved.

    Here ``q'`` is ``E sum_l p_l p'_l`` of the two, and ``q`` that of one; the pull is ``q``.
    """

    heads, most = 2, LARGEST_PAIR_DEVIATION - 1  # the table goes on a little

    def within(self, largest: float, deviations: Float[np.ndarray, "node"]) -> Averages:
        """The averages at deviations up to one for which a table is made."""
        shared, pull, along = _opposite_heads(self.length, largest)(deviations)
        return Averages(deviations**2 * shared, pull, along)


_one_head = functools.lru_cache(maxsize=64)(error_table)


@functools.lru_cache(maxsize=64)
def _opposite_heads(length: float, largest: float) -> scipy.interpolate.BSpline:
    """Splines of even functions of ``s``; of the first, which is as small, over ``s^2``."""
    s = np.arange(1, math.ceil(largest * _KNOTS_PER_UNIT) + _BEYOND) / _KNOTS_PER_UNIT
    alone = prompt_moments(s, length)
    opposite = np.array([[1.0, -1.0], [-1.0, 1.0]])
    pair = two_head_moments(s[:, None, None] ** 2 * opposite, length)
    across = pair.first + pair.second - pair.outer - pair.swapped
    q = alone.sum_of_squared_weights
    along = (alone.error_per_variance - across) / 2 - 2 * q
    values = np.stack([(q - pair.shared) / 2 / s**2, q, along])
    knots, both = np.concatenate([-s[::-1], s]), np.concatenate([values[:, ::-1], values], axis=1)
    return scipy.interpolate.make_interp_spline(knots, both, k=_DEGREE, axis=1)
