"""The gradient of the training loss at every magnitude.

Gradients reach exp(-5000), which no array holds. Backward differentiation is linear, so a factor
taken out of a cotangent passes through untouched: the graph is cut at the softmax and at the
loss, where the factors arise, one for each row, and automatic differentiation does the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.attention.softmax import SoftmaxRow, row_cotangent, softmax_row

_TIE_ROUNDINGS = 4
"""Roundings, relative to |u| |x|, within which two tokens have the same effect on the loss."""


class ScaledGradient(NamedTuple):
    """The gradient of each group of parameters, every leaf a ``Scaled``.

    Attributes:
        attention: In the attention parameters.
        head: In the arrays of the head.
    """

    attention: PyTree[Scaled]
    head: PyTree[Scaled]


def scaled_gradient(
    parameterization: Parameterization, loss: Loss, parameters: PyTree, head: Head, rows: Rows
) -> ScaledGradient:
    """Gradient of ``L = mean_ik loss(h(sum_t softmax(s_ik)_t v_it), y_ik)``, at any magnitude.

    Each row carries a scale of its own, from its softmax and from its loss; only where rows are
    added up are they brought to the largest. Rows with a single token contribute nothing, but
    count in the mean.

    Args:
        parameterization: What the attention parameters mean.
        loss: The loss.
        parameters: Attention parameters.
        head: The head, for this data set alone.
        rows: The data set.
    """
    head = jax.tree.map(jnp.asarray, head)  # NumPy leaves would count as constants
    scores, pull_attention = jax.vjp(lambda p: parameterization.scores(p, rows), parameters)
    row = softmax_row(scores, rows.mask)
    outputs = jnp.einsum("nkt,ntv->nkv", row.probabilities, rows.values)
    predictions, pull_head = eqx.filter_vjp(lambda h, o: h(o), head, outputs)
    cotangent, log_loss = loss.cotangent(predictions, rows.labels)
    _, push = pull_head(cotangent)
    gain = jnp.einsum("ntv,nkv->nkt", rows.values, push)
    mantissa, log_softmax = row_cotangent(row, gain, _tie(row, push, rows))

    log_rows = log_softmax + log_loss
    scale, head_scale = common_log_scale(log_rows), common_log_scale(log_loss)
    share = relative(log_rows, scale) / log_rows.size
    head_share = relative(log_loss, head_scale) / log_loss.size
    (attention,) = pull_attention(mantissa * share[..., None])
    head_mantissa, _ = pull_head(cotangent * head_share)
    return ScaledGradient(
        jax.tree.map(lambda leaf: Scaled(leaf, scale), attention),
        jax.tree.map(lambda leaf: Scaled(leaf, head_scale), head_mantissa),
    )


def mean_loss(
    parameterization: Parameterization, loss: Loss, parameters: PyTree, head: Head, rows: Rows
) -> Float[Array, ""]:
    """The training loss, the mean over all rows of one data set."""
    row = softmax_row(parameterization.scores(parameters, rows), rows.mask)
    outputs = jnp.einsum("nkt,ntv->nkv", row.probabilities, rows.values)
    return loss.value(head(outputs), rows.labels).mean()


def _tie(
    row: SoftmaxRow, push: Float[Array, "sequence query v"], rows: Rows
) -> Float[Array, "sequence query token"]:
    """How far rounding alone can move the difference of two tokens' effects."""
    norms = rows.value_norms[..., None, :]
    reach = norms + jnp.where(row.leader, norms, 0).sum(-1, keepdims=True)
    unit = _TIE_ROUNDINGS * jnp.finfo(push.dtype).eps
    return unit * jnp.linalg.norm(push, axis=-1, keepdims=True) * reach
