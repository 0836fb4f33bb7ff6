"""What pulls a run away from the tokens it attends to, and what holds it there."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.basins.problem import BasinProblem
from attractor.precision import double_precision

_TIE_ROUNDINGS = 8
"""Roundings, relative to the terms that make a difference of scores, within which tokens tie."""


class Pulls(NamedTuple):
    """How strongly each token pulls on the matrix once it has a share of the attention.

    A row that attends to token ``a`` and gives a small weight ``s_t`` to another token adds
    ``s_t <g, x_t - x_a> (k_a - k_t) z^T`` to the negative gradient, with ``g`` the gradient of
    the loss in the attention output ``x_a``. Where ``<g, x_t - x_a> > 0`` it widens the margin
    over that token, which is worse than ``a``; where it is negative the token is better, and its
    margin shrinks.

    Attributes:
        better: True for tokens that would lower the loss.
        tied: True for other tokens that would neither raise nor lower it, to rounding.
        log_size: Logarithm of the norm of what is added, without the weight ``s_t``; minus
            infinity where masked or attended to.
    """

    better: Bool[np.ndarray, "selection sequence query token"]
    tied: Bool[np.ndarray, "selection sequence query token"]
    log_size: Float[np.ndarray, "selection sequence query token"]


def pulls(problem: BasinProblem, attended: Int[np.ndarray, "selection sequence query"]) -> Pulls:
    """The pull of every token, for rows that attend to given tokens."""
    tokens = problem.tokens
    sequence = np.arange(tokens.sequences)[:, None]
    outputs, keys = tokens.values[sequence, attended], tokens.keys[sequence, attended]
    slope, log_scale = _slopes(problem, outputs)
    apart = tokens.values[:, None] - outputs[..., None, :]
    rise = np.einsum("...v,...tv->...t", slope, apart)
    sizes = np.linalg.norm(tokens.values, axis=-1)[:, None]
    reach = np.linalg.norm(slope, axis=-1)[..., None] * (
        sizes + np.linalg.norm(outputs, axis=-1)[..., None]
    )
    level = np.abs(rise) <= _TIE_ROUNDINGS * np.finfo(np.float64).eps * reach
    others = tokens.mask & (np.arange(tokens.length) != attended[..., None])
    width = np.linalg.norm(tokens.keys[:, None] - keys[..., None, :], axis=-1)
    width = width * np.linalg.norm(tokens.queries, axis=-1)[..., None]
    with np.errstate(divide="ignore"):
        log_size = np.log(np.where(others & ~level, np.abs(rise) * width, 0.0))
    return Pulls(
        better=others & ~level & (rise < 0),
        tied=others & level,
        log_size=log_size + log_scale[..., None],
    )


def _slopes(
    problem: BasinProblem, outputs: Float[np.ndarray, "selection sequence query v"]
) -> tuple[Float[np.ndarray, "selection sequence query v"], Float[np.ndarray, "selection ..."]]:
    """Gradients of the loss in attention outputs, as mantissas and logarithms of scales."""
    assert problem.tokens.labels is not None
    with double_precision():
        labels = jnp.broadcast_to(jnp.asarray(problem.tokens.labels), outputs.shape[:-1])
        prediction, pull_back = jax.vjp(problem.head, outputs)
        mantissa, log_scale = problem.loss.cotangent(prediction, labels)
        (slope,) = pull_back(mantissa)
        return np.asarray(slope), np.asarray(log_scale)
