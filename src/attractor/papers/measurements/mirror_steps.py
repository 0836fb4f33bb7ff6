"""Steps of mirror descent, and Bregman divergences."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.analysis import directional_bregman_divergence
from attractor.attention import AttentionMatrix, get_loss, mean_loss, scaled_gradient
from attractor.attention.rows import attention_rows
from attractor.attention.scaled import magnitude
from attractor.files.case import Case
from attractor.geometry import Geometry, Lp
from attractor.support.precision import double_precision
from attractor.training import mirror_descent


def divergences(
    W: Float[np.ndarray, "trial *records d e"],
    solutions: Float[np.ndarray, "trial d e"],
    geometry: Geometry,
) -> Float[np.ndarray, "trial *records"]:
    """``D(W*/||W*||, W/||W||)`` of every trial's matrices from its solution.

    Args:
        W: Matrices; those that are zero measure NaN.
        solutions: One for each trial; where it is not finite all measure NaN.
        geometry: The norm whose potential it is, not always that of the solutions.
    """
    found = [
        directional_bregman_divergence(one.reshape(-1, *one.shape[-2:]), solution, geometry)
        for one, solution in zip(W, solutions, strict=True)
    ]
    return np.stack(found).reshape(W.shape[:-2])


class LossAt(NamedTuple):
    """The logistic loss and its gradient at given matrices.

    Attributes:
        value: The loss.
        gradient: Its gradient.
    """

    value: Float[np.ndarray, "batch"]
    gradient: Float[np.ndarray, "batch d e"]


def loss_at(case: Case, W: Float[np.ndarray, "batch d e"]) -> LossAt:
    """The logistic loss of a case and its gradient."""
    with double_precision():
        rows = attention_rows(case.tokens)
        found = _losses(jnp.asarray(W), case.head, rows)
        return LossAt(*(np.asarray(each) for each in found))


def step_from(
    case: Case, W: Float[np.ndarray, "batch d e"], p: float, learning_rate: float
) -> Float[np.ndarray, "batch d e"]:
    """The matrices after one unnormalized step of the optimizer ``mirror_descent``."""
    with double_precision():
        rows = attention_rows(case.tokens)
        return np.asarray(_steps(p, learning_rate, jnp.asarray(W), case.head, rows))


def potential_divergence(
    U: Float[np.ndarray, "*batch d e"], W: Float[np.ndarray, "*batch d e"], p: float
) -> Float[np.ndarray, "*batch"]:
    """``D_psi(U, W) = psi(U) - psi(W) - <grad psi(W), U - W>`` with ``psi = sum |W_ij|^p / p``."""
    image = Lp(p).mirror_map(W)
    terms = np.abs(U) ** p / p + (1 - 1 / p) * np.abs(W) ** p - image * U
    return terms.sum((-1, -2))


@jax.jit
def _losses(W: Array, head: Any, rows: Any) -> tuple[Array, Array]:
    layer, loss = AttentionMatrix(), get_loss("logistic")

    def one(W: Array) -> tuple[Array, Array]:
        gradient = scaled_gradient(layer, loss, W, head, rows)
        return mean_loss(layer, loss, W, head, rows), magnitude(gradient.attention)

    return jax.vmap(one)(W)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _steps(p: float, learning_rate: float, W: Array, head: Any, rows: Any) -> Array:
    optimizer = mirror_descent(learning_rate, p, normalize=False)

    def one(W: Array) -> Array:
        gradient = scaled_gradient(AttentionMatrix(), get_loss("logistic"), W, head, rows)
        return optimizer.step(gradient.attention, optimizer.init(W), W)[0]

    return jax.vmap(one)(W)
