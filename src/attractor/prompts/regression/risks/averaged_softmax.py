"""Softmax attention on prompts of finite length: its exact risk, averaged over queries as well."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.prompts.finite_length.score_variance import ScoreVariance
from attractor.prompts.regression.risks.prompt_averages import PromptAverages
from attractor.prompts.regression.task import RegressionTask

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
