"""Softmax attention on prompts of finite length: its exact risk, averaged over queries as well."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.prompt.finite_length.averages import interpolated_averages
from attractor.prompt.finite_length.score_variance import ScoreVariance
from attractor.prompt.finite_length.table import ErrorTable, error_table, spline_values
from attractor.prompt.regression.finite_softmax import LARGEST_TABLE
from attractor.prompt.regression.task import RegressionTask

_RAREST = 1e-10
"""Mass of queries that may be left out, times the length: of what a finite length adds."""
_TABLE_STEP = 2.0  # tables to larger deviations cost the more the larger these are


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
    """The exact risk of one head with ``c = v = 0`` on prompts of one length, with its gradient.

    For queries ``x_q = R g`` the score deviation is ``s = |F^T A R g|`` with ``S = F F^T``. In the
    axes of its quadratic form the mean over queries of every term of ``FiniteSoftmax.risk`` is a
    sum over nodes of ``s`` alone, with an error below 1e-9 of what a finite length adds; and its
    gradient is the sum's. Nothing is drawn, and covariances need not commute.
    """

    def __init__(self, task: RegressionTask, length: float) -> None:
        """Prepares the factors of the covariances.

        Args:
            task: The law of prompts and queries.
            length: Number of tokens of a prompt, or infinity.
        """
        self._task, self._length = task, float(length)
        self._left, self._right = np.linalg.cholesky(task.covariance), task.query_factor
        self._label_variance = task.weight_variance * np.trace(task.covariance) + task.label_noise
        self._table: ErrorTable | None = None

    def __call__(self, key_query: Float[np.ndarray, "d d"], value_label: float) -> Evaluated:
        """The risk and its gradient at a head.

        Args:
            key_query: ``A``.
            value_label: ``b``.
        """
        task, b, t = self._task, value_label, self._task.weight_variance
        output = task.covariance @ key_query
        residual = (b * output - np.eye(task.dimension)) @ task.query_covariance
        risk = t * float(np.sum(residual * (b * output - np.eye(task.dimension)))) / 2
        in_a = t * b * task.covariance @ residual
        in_b = t * float(np.sum(output * residual))
        if math.isinf(self._length):
            return Evaluated(risk, in_a, in_b)

        scores = self._left.T @ key_query @ self._right
        variances, axes = np.linalg.eigh(scores.T @ scores)
        law = ScoreVariance.of(variances, _RAREST / self._length)
        weights, shift = self._prompt_averages(law)
        q, h = _Means.of(law, weights), _Means.of(law, shift)
        turned, seen = scores @ axes, self._left.T @ self._right @ axes
        metric = self._left.T @ self._left
        square = turned.T @ metric @ turned
        cross = turned.T @ seen
        cross = (cross + cross.T) / 2
        along, pull = float(np.diag(square) @ h.squares), float(np.diag(cross) @ q.squares)
        noise = self._label_variance * q.mean
        risk += b**2 * (t * along + noise) / 2 + b * t * pull
        in_b += b * (t * along + noise) + t * pull
        of_scores = t * b**2 * (metric @ turned * h.squares + turned @ h.of_form(square))
        of_scores += b**2 * self._label_variance * turned * q.slopes
        of_scores += b * t * (seen * q.squares + 2 * turned @ q.of_form(cross))
        in_a = in_a + self._left @ of_scores @ axes.T @ self._right.T
        return Evaluated(risk, in_a, in_b)

    def _prompt_averages(
        self, law: ScoreVariance
    ) -> tuple[Float[np.ndarray, "node"], Float[np.ndarray, "node"]]:
        """``q = E sum_l p_l^2`` and ``(E ghat^2 - q) / s^2 - 1``, which vanish on long prompts."""
        s = law.deviations
        near = s <= LARGEST_TABLE
        weights, shift = np.empty((2, len(s)))
        if near.any():
            largest = float(s[near][-1])
            if self._table is None or largest > self._table.largest_deviation:
                steps = math.ceil(largest / _TABLE_STEP)
                self._table = _table(self._length, min(steps * _TABLE_STEP, LARGEST_TABLE))
            log_weights, squared_gain = spline_values(self._table, s[near])[1:3]
            weights[near], shift[near] = np.exp(log_weights), squared_gain - 1
        if not near.all():
            length = np.array([self._length])
            weights[~near], error = interpolated_averages(
                length, LARGEST_TABLE, math.inf, s[~near]
            )[..., 0]
            shift[~near] = error - 2 * weights[~near]
        return weights, shift


_table = functools.lru_cache(maxsize=64)(error_table)
