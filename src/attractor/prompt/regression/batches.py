"""Prompts of in-context regression, in coordinates in which their tokens are standard normal."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from attractor.prompt.regression.drawing import standard_normals
from attractor.prompt.regression.task import RegressionTask


class Prompts(NamedTuple):
    """Weights and queries of prompts.

    Attributes:
        weights: The weights ``w`` of each prompt.
        queries: The input ``x_q`` of its query.
        labels: The label of its query, with noise.
    """

    weights: Float[Array, "prompt d"]
    queries: Float[Array, "prompt d"]
    labels: Float[Array, "prompt"]


def draw_prompts(task: RegressionTask, key: UInt32[Array, "2"], count: int) -> Prompts:
    """Draws weights, queries and their labels.

    Args:
        task: The law of prompts and queries.
        key: Two words.
        count: Number of prompts.
    """
    d = task.dimension
    normals = standard_normals(key, (count, 2 * d + 1), 0).astype(jnp.float64)
    weights = np.sqrt(task.weight_variance) * normals[:, :d]
    queries = normals[:, d : 2 * d] @ task.query_factor.T
    noise = np.sqrt(task.query_noise) * normals[:, 2 * d]
    return Prompts(weights, queries, (weights * queries).sum(-1) + noise)


class Whitening(NamedTuple):
    """Tokens as linear functions of standard normal ones: ``x = R n``, ``y = w^T x + s m``.

    ``(n, m)`` has ``d + 1`` independent entries, or ``d`` where labels have no noise.

    Attributes:
        factor: ``R``, with the covariance ``R R^T`` of the inputs.
        noise: ``s``, the standard deviation of the noise of labels; none if zero.
        weights: The weights ``w`` of each prompt.
    """

    factor: Float[np.ndarray, "d d"]
    noise: float
    weights: Float[Array, "prompt d"]

    @classmethod
    def of(cls, task: RegressionTask, prompts: Prompts) -> Whitening:
        """The one of these prompts."""
        factor = np.linalg.cholesky(task.covariance)
        return cls(factor, float(np.sqrt(task.label_noise)), prompts.weights)

    def functional(
        self, of_token: Float[Array, "prompt head d+1"]
    ) -> Float[Array, "prompt head entries"]:
        """A linear functional of tokens as one of standard normal ones."""
        inputs, label = of_token[..., :-1], of_token[..., -1:]
        white = (inputs + label * self.weights[:, None, :]) @ self.factor
        return jnp.concatenate([white, self.noise * label], -1) if self.noise else white

    def token(self, white: Float[Array, "prompt head entries"]) -> Float[Array, "prompt head d+1"]:
        """A combination of tokens, from that of standard normal ones."""
        d = len(self.factor)
        inputs = white[..., :d] @ self.factor.T
        label = (inputs * self.weights[:, None, :]).sum(-1, keepdims=True)
        if self.noise:
            label = label + self.noise * white[..., d:]
        return jnp.concatenate([inputs, label], -1)
