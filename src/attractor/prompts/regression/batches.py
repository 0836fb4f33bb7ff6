"""Prompts of in-context regression, in coordinates in which their tokens are standard normal."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from attractor.prompts.regression.drawing import standard_normals
from attractor.prompts.regression.risks.quadratics import TaskArrays
from attractor.prompts.regression.task import RegressionTask


class PromptLaw(NamedTuple):
    """The law of prompts and queries as arrays that may be traced: one program serves all tasks.

    Attributes:
        arrays: What risks depend on.
        factor: ``R``, with the covariance ``R R^T`` of the inputs.
        noise: Standard deviation of the noise of labels in a prompt; None if there is none, as
            tokens then have one entry less, and need another program.
        query_noise: Standard deviation of the noise of the query's label.
    """

    arrays: TaskArrays
    factor: Float[Any, "d d"]
    noise: Float[Any, ""] | None
    query_noise: Float[Any, ""]

    @classmethod
    def of(cls, task: RegressionTask) -> PromptLaw:
        """That of a task."""
        law = cls(
            TaskArrays.of(task),
            np.linalg.cholesky(task.covariance),
            np.sqrt(task.label_noise) if task.label_noise else None,
            np.sqrt(task.query_noise),
        )
        return jax.tree.map(np.asarray, law)


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


def draw_prompts(law: PromptLaw, key: UInt32[Array, "2"], count: int) -> Prompts:
    """Draws weights, queries and their labels.

    Args:
        law: Of prompts and queries.
        key: Two words.
        count: Number of prompts.
    """
    d = len(law.factor)
    normals = standard_normals(key, (count, 2 * d + 1), 0).astype(jnp.float64)
    weights = jnp.sqrt(law.arrays.weight_variance) * normals[:, :d]
    queries = normals[:, d : 2 * d] @ law.arrays.query_factor.T
    noise = law.query_noise * normals[:, 2 * d]
    return Prompts(weights, queries, (weights * queries).sum(-1) + noise)


class Whitening(NamedTuple):
    """Tokens as linear functions of standard normal ones: ``x = R n``, ``y = w^T x + s m``.

    ``(n, m)`` has ``d + 1`` independent entries, or ``d`` where labels have no noise.

    Attributes:
        law: With ``R`` and ``s``, the standard deviation of the noise of labels.
        weights: The weights ``w`` of each prompt.
    """

    law: PromptLaw
    weights: Float[Array, "prompt d"]

    def functional(
        self, of_token: Float[Array, "prompt head d+1"]
    ) -> Float[Array, "prompt head entries"]:
        """A linear functional of tokens as one of standard normal ones."""
        inputs, label = of_token[..., :-1], of_token[..., -1:]
        white = (inputs + label * self.weights[:, None, :]) @ self.law.factor
        noise = self.law.noise
        return white if noise is None else jnp.concatenate([white, noise * label], -1)

    def token(self, white: Float[Array, "prompt head entries"]) -> Float[Array, "prompt head d+1"]:
        """A combination of tokens, from that of standard normal ones."""
        d = len(self.law.factor)
        inputs = white[..., :d] @ self.law.factor.T
        label = (inputs * self.weights[:, None, :]).sum(-1, keepdims=True)
        if self.law.noise is not None:
            label = label + self.law.noise * white[..., d:]
        return jnp.concatenate([inputs, label], -1)
