"""Directions of the gradient, at given and at random parameters."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attractor.attention import AttentionMatrix, Loss, get_loss, scaled_gradient
from attractor.attention.rows import attention_rows
from attractor.files.case import Case
from attractor.support.precision import double_precision

LENGTHS = (0.1, 1.0, 5.0, 30.0)
"""Norms of parameters at which something is sampled, in units of the norm of the solution."""


def random_matrices(case: Case, seed: int, each: int = 250) -> Float[np.ndarray, "batch d e"]:
    """Random matrices of several norms, in units of the norm of the best tokens' solution."""
    random = np.random.default_rng([seed, 7])
    shape = (len(LENGTHS), each, case.tokens.key_dimension, case.tokens.query_dimension)
    matrices = random.standard_normal(shape)
    matrices /= np.linalg.norm(matrices, axis=(-1, -2), keepdims=True)
    norm = float(case.solution(selection=case.optimal).value)
    lengths = np.array(LENGTHS) * (norm if np.isfinite(norm) and norm > 0 else 1.0)
    return (matrices * lengths[:, None, None, None]).reshape(-1, *shape[2:])


def along(
    direction: Float[np.ndarray, "d e"], lengths: tuple[float, ...] = LENGTHS
) -> Float[np.ndarray, "batch d e"]:
    """Multiples of a matrix."""
    return np.reshape(lengths, (-1, 1, 1)) * direction


def descent_directions(
    case: Case, matrices: Float[np.ndarray, "batch d e"], loss: str = "logistic"
) -> Float[np.ndarray, "batch d e"]:
    """Minus the gradient in the attention matrix, scaled to length one; exact at any magnitude."""
    with double_precision():
        rows = attention_rows(case.tokens)
        found = _gradients(jnp.asarray(matrices), case.head, rows, get_loss(loss))
        gradients = np.asarray(found)
    norms = np.linalg.norm(gradients, axis=(-1, -2), keepdims=True)
    return -gradients / np.where(norms > 0, norms, 1.0)


@functools.partial(jax.jit, static_argnames="loss")
def _gradients(matrices: Any, head: Any, rows: Any, loss: Loss) -> Any:
    """Gradients at many matrices, each up to a positive factor of its own."""

    def one(matrix: Any) -> Any:
        return scaled_gradient(AttentionMatrix(), loss, matrix, head, rows).attention.mantissa

    return jax.vmap(one)(matrices)
