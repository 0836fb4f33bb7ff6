"""Gradients of the loss, and whether any direction lowers it."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax

from attractor.attention import (
    AttentionMatrix,
    ConcaveHead,
    LinearHead,
    Loss,
    get_loss,
    scaled_gradient,
)
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


_TOLERANCE = 1e-7


def loss_gradients(
    case: Case, matrices: Float[np.ndarray, "batch d e"]
) -> Float[np.ndarray, "batch d e"]:
    """``mean_ik l'(f_ik) sum_t s_t (gamma_t - sum_u s_u gamma_u) x_t z_k^T``.

    Here ``f_ik = y h(o_ik)`` at the output ``o_ik = sum_t s_t v_t``, and ``gamma_t = y grad
    h(o_ik)^T v_t``, which is the token score if the head is linear. Right to rounding relative
    to the largest that gradients get; far out they may vanish.
    """
    tokens, head = case.tokens, case.head
    assert isinstance(head, LinearHead | ConcaveHead) and tokens.labels is not None
    weights = softmax(np.where(tokens.mask, tokens.scores(matrices), -np.inf), axis=-1)
    outputs = weights @ tokens.values
    slopes = np.asarray(head.weight)
    if isinstance(head, ConcaveHead):
        slopes = slopes - 2 * np.asarray(head.penalty) * outputs
    slopes = np.broadcast_to(slopes, outputs.shape)
    gamma = tokens.labels[..., None] * (slopes @ tokens.values.mT)
    predictions = tokens.labels * np.asarray(head(outputs))
    means = (weights * gamma).sum(-1, keepdims=True)
    pulls = -expit(-predictions)[..., None] * weights * (gamma - means)
    products = np.einsum("bikt,itd,ike->bde", pulls, tokens.keys, tokens.queries)
    return products / predictions[0].size


def unit_of_length(case: Case) -> float:
    """The product of the lengths of keys, less the mean of their row, and of queries.

    A constant that the keys of a row share changes no attention.
    """
    tokens = case.tokens
    mask = tokens.mask.any(-2)[..., None]
    centers = np.where(mask, tokens.keys, 0).sum(-2, keepdims=True) / mask.sum(-2, keepdims=True)
    away = np.where(mask, tokens.keys - centers, 0)
    lengths = (np.linalg.norm(vectors, axis=-1).max() for vectors in (away, tokens.queries))
    return float(np.prod([*lengths])) or 1.0


def flow(case: Case, log_times: Float[np.ndarray, "time"]) -> Float[np.ndarray, "time d e"]:
    """The gradient flow of W from zero at given logarithms of time, up to about 25.

    It settles where steps of constant length go to and fro. Beyond e^25, gradients that balance
    are lost in rounding.

    Args:
        case: The data.
        log_times: Increasing; the flow itself starts at exp(-5), from zero. The unit of time is
            ``unit_of_length(case)`` to the power -2, so that flows of keys and queries of any
            length are one, with W over that unit.

    Returns:
        W at these times; NaN where the flow could not be followed to its end.
    """
    shape = (case.tokens.key_dimension, case.tokens.query_dimension)
    unit = unit_of_length(case)

    def velocity(log_time: float, W: np.ndarray) -> np.ndarray:
        gradient = loss_gradients(case, W.reshape(1, *shape) / unit) / unit
        return -np.exp(log_time) * gradient.ravel()

    found = solve_ivp(
        velocity,
        (-5.0, float(log_times[-1])),
        np.zeros(shape[0] * shape[1]),
        method="LSODA",
        t_eval=log_times,
        rtol=_TOLERANCE,
        atol=_TOLERANCE,
    )
    if not found.success:
        return np.full((len(log_times), *shape), np.nan)
    return found.y.T.reshape(-1, *shape) / unit
