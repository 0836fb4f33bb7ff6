"""Softmax attention on prompts of finite length: its exact risk, as a sum over queries."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.prompts.finite_length import ErrorTable, error_table
from attractor.prompts.finite_length.functions import LARGEST_LENGTH
from attractor.prompts.regression.risks.quadratics import TaskArrays
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_number

_RADII = 96
_TAIL = 7.2  # beyond the typical length of a query; the mass outside is below rounding
LARGEST_TABLE = 31.0
_HEADROOM = 1.25
_TABLE_STEP = 4.0


class Queries(NamedTuple):
    """Weighted queries that represent the standard normal law.

    Attributes:
        points: The queries; those of a task are ``R g``.
        weights: Their weights, of sum one.
    """

    points: Float[np.ndarray, "query d"]
    weights: Float[np.ndarray, "query"]

    @classmethod
    def along(cls, directions: Float[np.ndarray, "direction d"]) -> Queries:
        """Queries along some directions, with the exact law of their length."""
        count, d = directions.shape
        low, high = max(0.0, np.sqrt(d) - _TAIL), np.sqrt(d) + _TAIL
        nodes, masses = np.polynomial.legendre.leggauss(_RADII)
        radii = (low + high) / 2 + (high - low) / 2 * nodes
        density = (d - 1) * np.log(radii) - radii**2 / 2
        weights = masses * np.exp(density - density.max())
        points = (directions[:, None, :] * radii[:, None]).reshape(-1, d)
        return cls(points, np.tile(weights / weights.sum(), count) / count)

    @property
    def longest(self) -> float:
        """Length of the longest."""
        return float(np.linalg.norm(self.points, axis=-1).max())


class FiniteSoftmax(NamedTuple):
    """One head with ``c = v = 0`` on finite prompts, for given queries.

    Attributes:
        law: Of prompts.
        queries: Inputs of queries.
        weights: Their weights, of sum one.
        risk_of_zero: Risk of predicting zero.
        table: Averages over prompts of the length.
    """

    law: TaskArrays
    queries: Float[Any, "query d"]
    weights: Float[Any, "query"]
    risk_of_zero: Float[Any, ""]
    table: ErrorTable

    @classmethod
    def of(
        cls, task: RegressionTask, length: float, queries: Queries, deviation: float
    ) -> FiniteSoftmax:
        """Tabulates the averages over prompts.

        Args:
            task: The law of prompts and queries.
            length: Number of tokens of a prompt.
            queries: Weighted queries.
            deviation: The largest standard deviation of scores expected, at most
                ``LARGEST_TABLE``.

        Raises:
            InvalidInputError: If the length is below 1.
        """
        length = check_number("length", length, least=1.0, most=LARGEST_LENGTH, example=100)
        # Few sizes of tables: what uses one is compiled for its size.
        steps = max(1.0, np.ceil(_HEADROOM * deviation / _TABLE_STEP))
        table = _table(float(length), float(min(_TABLE_STEP * steps, LARGEST_TABLE)))
        points = queries.points @ task.query_factor.T
        return cls(
            TaskArrays.of(task), points, queries.weights, np.float64(task.risk_of_zero), table
        )

    def risk(self, key_query: Float[Array, "d d"], value_label: Float[Array, ""]) -> Array:
        """The risk of a head, whose scores of a query count as less where they leave the table.

        Scores of a query are Gaussian with standard deviation ``s``, ``s^2 = a^T S a`` with ``a =
        A x_q``. The label's part along the scores becomes ``ghat``, the softmax average of as many
        standard normal scores, its rest is averaged by the same weights ``p``. So ``2 R =
        E[b^2 (t |S a|^2 (m - q) / s^2 + (t tr S + n) q) - 2 b t a^T S x_q (1 - q)] + t tr S_q``
        with ``m(s) = E ghat^2``, ``q(s) = E sum_l p_l^2`` and ``E ghat = s (1 - q)``.

        Args:
            key_query: ``A``.
            value_label: ``b``.
        """
        covariance, _, variance, noise = self.law
        scores = self.queries @ key_query.T
        outputs = scores @ covariance
        square = (scores * outputs).sum(axis=-1)
        positive = jnp.where(square > 0, square, 1.0)
        deviation = jnp.where(square > 0, jnp.sqrt(positive), 0.0)
        inside = jnp.minimum(1.0, self.table.largest_deviation / jnp.sqrt(positive))
        deviation = jnp.minimum(deviation, self.table.largest_deviation)
        weights = self.table.sum_of_squared_weights(deviation)
        along = inside**2 * self.table.excess_per_variance(deviation)
        spread = variance * (outputs**2).sum(axis=-1) * along
        spread += (variance * jnp.trace(covariance) + noise) * weights
        gain = variance * (outputs * self.queries).sum(axis=-1) * inside * (1 - weights)
        return self.risk_of_zero + self.weights @ (value_label**2 * spread / 2 - value_label * gain)

    def largest_deviation(self, key_queries: Float[np.ndarray, "*batch d d"]) -> float:
        """The largest standard deviation of the scores of any query by any of some heads."""
        left = np.linalg.cholesky(self.law.covariance).T
        scores = left @ key_queries @ np.asarray(self.queries).T
        return float(np.linalg.norm(scores, axis=-2).max())


_table = functools.lru_cache(maxsize=64)(error_table)
