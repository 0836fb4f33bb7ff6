"""The records of a path that training takes as well."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention import mean_loss, scaled_gradient
from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization, Parameters
from attractor.attention.rows import Rows
from attractor.attention.scaled import log_norm
from attractor.attention.softmax import softmax_row
from attractor.geometry import Geometry
from attractor.support.randomness import traced


def measure(
    layer: Parameterization,
    loss: Loss,
    geometry: Geometry,
    W: Float[np.ndarray, "radius d e"],
    head: Head,
    rows: Rows,
) -> dict[str, np.ndarray]:
    """Loss, norm, gradient, what is attended to, and parameters, along a path.

    Args:
        layer: The parameterization.
        loss: The loss.
        geometry: The norm of W that bounds the path.
        W: The matrices.
        head: The head, or one for each radius.
        rows: The data set.
    """
    heads = head.for_instances(np.zeros(len(W), dtype=int)) if head.instances is None else head
    measured = _measure(layer, loss, geometry, W, heads, rows)
    return {name: np.asarray(array) for name, array in measured.items()}


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
@traced
def _measure(
    layer: Parameterization,
    loss: Loss,
    geometry: Geometry,
    W: Float[Array, "radius d e"],
    heads: Head,
    rows: Rows,
) -> dict[str, Array]:
    def at(W: Array, head: Head) -> dict[str, Array]:
        attention = layer.from_matrix(W)
        found = scaled_gradient(layer, loss, attention, head, rows)
        gradient = Parameters(found.attention, found.head if layer.trains_head else None)
        probabilities = softmax_row(layer.scores(attention, rows), rows.mask).probabilities
        return {
            "loss": mean_loss(layer, loss, attention, head, rows),
            "norm": geometry.norm(W),
            "log_gradient_norm": log_norm(gradient),
            "attended": probabilities.argmax(-1).astype(jnp.int32),
            "attended_probability": probabilities.max(-1),
            **layer.to_arrays(attention),
            "W": W,
        }

    return jax.vmap(at)(W, heads)
