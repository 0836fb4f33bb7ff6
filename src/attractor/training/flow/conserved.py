"""What gradient flow leaves unchanged, and by how much a computed flow has changed it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from attractor.attention import AttentionMatrix, KeyQuery, Parameterization, PromptVector
from attractor.attention.parameterization import Joint

_LARGEST_MATRIX = 2500
_SMALL_MATRIX = 256
_ROWS_AT_ONCE = 4096


def conserved_drift(
    parameterization: Parameterization,
    beginning: PyTree,
    parameters: PyTree,
    fixed: Float[Array, "entry direction"],
) -> Float[Array, ""]:
    """How far what should be conserved has moved, relative to the size of the parameters.

    For factors, ``K^T K - Q^T Q`` is constant: with ``G`` the gradient in ``W = K Q^T``, both terms
    change at the rate ``-(K^T G Q + Q^T G^T K)``. For ``W`` and ``p``, so is the component outside
    the span of the rank-one matrices ``(x_s - x_t) z^T`` of tokens of one row: the gradient
    lies in it. Training the head beside them changes neither.

    Args:
        parameterization: What the parameters mean.
        beginning: Attention parameters at time zero.
        parameters: Attention parameters now.
        fixed: Orthonormal directions outside the span, one a column; columns of zeros are none.

    Returns:
        The largest entry of the change, over ``||K||_F^2 + ||Q||_F^2`` or ``||W||_F``; NaN where
        nothing is known to be conserved.
    """
    layer = _attention_layer(parameterization)
    if isinstance(layer, KeyQuery):
        change = _balance(parameters) - _balance(beginning)
        scale = jnp.maximum(_squares(parameters), _squares(beginning))
    else:
        change = fixed @ (fixed.T @ (parameters - beginning).ravel())
        scale = jnp.sqrt(jnp.maximum((parameters**2).sum(), (beginning**2).sum()))
        scale = jnp.where(jnp.any(fixed != 0), scale, jnp.nan)
    return jnp.abs(change).max() / jnp.where(scale == 0, 1, scale)


def fixed_directions(
    parameterization: Parameterization,
    keys: Float[np.ndarray, "instance sequence token d"],
    queries: Float[np.ndarray, "instance sequence query e"],
    mask: Bool[np.ndarray, "instance sequence query token"],
) -> Float[np.ndarray, "instance entry direction"]:
    """Orthonormal directions in which no gradient points, padded with zeros.

    Where they are small they are padded to one size for all data, which compiles one program.

    None are sought for factors, which conserve something else, for a parameterization of the
    user's own, and in matrices of more than 2,500 entries.
    """
    entries = keys.shape[-1] * queries.shape[-1]
    layer = _attention_layer(parameterization)
    known = isinstance(layer, AttentionMatrix | PromptVector) and entries <= _LARGEST_MATRIX
    if not known:
        return np.zeros((len(keys), entries, 1))
    found = [_complement(*instance) for instance in zip(keys, queries, mask, strict=True)]
    most = max(1, *(one.shape[1] for one in found))
    filled = np.zeros((len(keys), entries, entries if entries <= _SMALL_MATRIX else most))
    for number, directions in enumerate(found):
        filled[number, :, : directions.shape[1]] = directions
    return filled


def _attention_layer(parameterization: Parameterization) -> Parameterization:
    return parameterization.attention if isinstance(parameterization, Joint) else parameterization


def _complement(
    keys: Float[np.ndarray, "sequence token d"],
    queries: Float[np.ndarray, "sequence query e"],
    mask: Bool[np.ndarray, "sequence query token"],
) -> Float[np.ndarray, "entry direction"]:
    """Orthonormal basis of what is orthogonal to every ``(x_s - x_t) z^T``."""
    first = mask.argmax(-1)
    row, query, token = np.nonzero(mask)
    other = first[row, query]
    row, query, token, other = (part[token != other] for part in (row, query, token, other))
    entries = keys.shape[-1] * queries.shape[-1]
    triangle = np.zeros((0, entries))
    for start in range(0, len(row), _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        differences = keys[row[some], token[some]] - keys[row[some], other[some]]
        products = differences[:, :, None] * queries[row[some], query[some]][:, None, :]
        stacked = np.concatenate([triangle, products.reshape(-1, entries)])
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
    if not triangle.any():
        return np.eye(entries)
    _, values, right = np.linalg.svd(triangle, full_matrices=True)
    rounding = max(len(row), entries) * np.finfo(np.float64).eps
    return right[(values > rounding * values[0]).sum() :].T


def _balance(factors: Any) -> Float[Array, "width width"]:
    return factors.K.T @ factors.K - factors.Q.T @ factors.Q


def _squares(factors: Any) -> Float[Array, ""]:
    return (factors.K**2).sum() + (factors.Q**2).sum()
