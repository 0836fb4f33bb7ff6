"""Softmax attention on finite prompts: its exact risk, by queries or averaged over them."""

from __future__ import annotations

import abc
import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.interpolate
from jaxtyping import Array, Float

from attractor.prompts.finite_length.averages import ScoreVariance, interpolated_averages
from attractor.prompts.finite_length.functions import LARGEST_LENGTH, prompt_moments
from attractor.prompts.finite_length.table import ErrorTable, error_table, spline_values
from attractor.prompts.finite_length.two_heads import along_scores, two_head_moments
from attractor.prompts.regression.risks.infinite_prompts import TaskArrays
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_number
from attractor.support.errors import InvalidInputError

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


_RAREST = 1e-10
"""Mass of queries that may be left out, times the length: of what a finite length adds."""


class Evaluated(NamedTuple):
    """The risk of a head, and its gradient.

    Attributes:
        risk: ``E (prediction - w^T x_q)^2 / 2``.
        key_query: Derivatives in ``A``.
        value_label: The derivative in ``b``.
    """

    risk: float
    key_query: Float[np.ndarray, "d d"]
    value_label: float


class _Means(NamedTuple):
    """Means over queries of a function ``f`` of the score deviation, in axes of the score variance.

    Attributes:
        mean: ``E f``.
        squares: ``E g_i^2 f``.
        slopes: ``E g_i^2 df/dv``.
        products: ``E g_i^2 g_j^2 df/dv``, a third of it where ``i = j``.
    """

    mean: float
    squares: Float[np.ndarray, "d"]
    slopes: Float[np.ndarray, "d"]
    products: Float[np.ndarray, "d d"]

    @classmethod
    def of(cls, law: ScoreVariance, values: Float[np.ndarray, "node"]) -> _Means:
        mean = float(law.masses @ values)
        factors = law.factors.reshape(len(law.factors), -1)
        weighted = (law.weights * values[:, None]).ravel()
        # A constant has no slope; what the sum makes of one is large where scores are small.
        sloped = -(law.transform * law.weights * (values - mean)[:, None]).ravel()
        return cls(
            mean,
            np.real(factors @ weighted),
            np.real(factors @ sloped),
            np.real((factors * sloped) @ factors.T),
        )

    def of_form(self, form: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
        """``E g g^T (g^T M g) df/dv`` for a symmetric ``M``."""
        return 2 * form * self.products + np.diag(self.products @ np.diag(form))


class AveragedSoftmax:
    """The exact risk of one head, or of two opposite ones, on prompts of one length.

    With its gradient, for heads with ``c = v = 0`` that predict ``b x_q^T A^T S w`` on infinite
    prompts. For queries ``x_q = R g`` and ``S = F F^T`` the score deviation is ``s = |F^T A R g|``.
    In the axes of its quadratic form the mean over queries of every term of the risk is a sum over
    nodes of ``s`` alone, with an error below 1e-9 of what a finite length adds; and its gradient is
    the sum's. Nothing is drawn, and covariances need not commute.
    """

    def __init__(self, task: RegressionTask, averages: PromptAverages) -> None:
        """Prepares the factors of the covariances.

        Args:
            task: The law of prompts and queries.
            averages: Over prompts, of the heads.
        """
        self._task, self._averages = task, averages
        self._left, self._right = np.linalg.cholesky(task.covariance), task.query_factor
        self._label_variance = task.weight_variance * np.trace(task.covariance) + task.label_noise

    def __call__(self, key_query: Float[np.ndarray, "d d"], value_label: float) -> Evaluated:
        """The risk and its gradient at a head.

        Args:
            key_query: ``A``.
            value_label: ``b``.

        Raises:
            InvalidInputError: If scores are so large that one token takes all attention.
        """
        task, b, t = self._task, value_label, self._task.weight_variance
        output = task.covariance @ key_query
        residual = (b * output - np.eye(task.dimension)) @ task.query_covariance
        risk = t * float(np.sum(residual * (b * output - np.eye(task.dimension)))) / 2
        in_a = t * b * task.covariance @ residual
        in_b = t * float(np.sum(output * residual))
        if math.isinf(self._averages.length):
            return Evaluated(risk, in_a, in_b)

        scores = self._left.T @ key_query @ self._right
        variances, axes = np.linalg.eigh(scores.T @ scores)
        law = ScoreVariance.of(variances, _RAREST / self._averages.length)
        averages = self._averages.at(law.deviations)
        shared, along = _Means.of(law, averages.shared), _Means.of(law, averages.along)
        alike = averages.pull is averages.shared  # as of one head
        pull = shared if alike else _Means.of(law, averages.pull)
        turned, seen = scores @ axes, self._left.T @ self._right @ axes
        metric = self._left.T @ self._left
        square = turned.T @ metric @ turned
        cross = turned.T @ seen
        cross = (cross + cross.T) / 2
        spread = t * float(np.diag(square) @ along.squares) + self._label_variance * shared.mean
        short = t * float(np.diag(cross) @ pull.squares)
        risk += b**2 * spread / 2 + b * short
        in_b += b * spread + short
        of_scores = t * b**2 * (metric @ turned * along.squares + turned @ along.of_form(square))
        of_scores += b**2 * self._label_variance * turned * shared.slopes
        of_scores += b * t * (seen * pull.squares + 2 * turned @ pull.of_form(cross))
        in_a = in_a + self._left @ of_scores @ axes.T @ self._right.T
        return Evaluated(risk, in_a, in_b)
