"""The gradient of the training loss at every magnitude.

Gradients reach exp(-5000), which no array holds. Backward differentiation is linear, so a factor
taken out of a cotangent passes through untouched: the graph is cut at the softmax and at the
loss, where the factors arise, one for each row, and automatic differentiation does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.heads import Head, as_head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.prediction import Prediction, token_gains
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.attention.softmax import SoftmaxRow, row_cotangent, softmax_row
from attractor.geometry._lengths import ordinary_factor


class ScaledGradient(NamedTuple):
    """The gradient of each group of parameters, every leaf a ``Scaled``.

    Attributes:
        attention: In the attention parameters.
        head: In the arrays of the head.
    """

    attention: PyTree[Scaled]
    head: PyTree[Scaled]


def scaled_gradient(
    parameterization: Parameterization,
    loss: Loss,
    parameters: PyTree,
    head: Head | eqx.Module,
    rows: Rows,
) -> ScaledGradient:
    """Gradient of ``L = mean_ik loss(h(sum_t softmax(s_ik)_t v_it), y_ik)``, at any magnitude.

    The mean is weighted where the rows have weights. Each row carries a scale of its own, from its
    softmax and from its loss; only where rows are added up are they brought to the largest. Rows
    with a single token contribute nothing, but count in the mean.

    Args:
        parameterization: What the attention parameters mean.
        loss: The loss.
        parameters: Attention parameters.
        head: The head, for this data set alone; or an Equinox module from one output to one
            prediction, whose gradient comes as that of the ``ModuleHead`` made of it.
        rows: The data set.

    Raises:
        InvalidInputError: If the head does not fit the values.
    """
    scores, pull_attention = jax.vjp(lambda p: parameterization.scores(p, rows), parameters)
    back = cotangents(loss, head, scores, rows)
    mantissa, log_softmax = row_cotangent(back.row, back.gain, back.tie)

    log_rows = log_softmax + back.log_gain
    scale, head_scale = common_log_scale(log_rows), common_log_scale(back.log_loss)
    share = relative(log_rows, scale) / log_rows.size
    head_share = relative(back.log_loss, head_scale) / log_rows.size
    (attention,) = pull_attention(mantissa * share[..., None])
    along_classes = (1,) * (back.prediction.ndim - head_share.ndim)
    weighted = back.prediction * head_share.reshape(head_share.shape + along_classes)
    head_mantissa, _ = back.pull_head(weighted)
    return ScaledGradient(
        jax.tree.map(lambda leaf: Scaled(leaf, scale), attention),
        jax.tree.map(lambda leaf: Scaled(leaf, head_scale), head_mantissa),
    )


class Cotangents(NamedTuple):
    """The loss pulled back to where each row takes its scale: to its prediction, to its softmax.

    Attributes:
        head: The head, its arrays those of JAX.
        row: The softmax.
        prediction: Mantissa of the derivative of the loss in the prediction.
        log_loss: Logarithm of its scale, with that of the weight of the row.
        log_gain: Logarithm of the scale of gains: the same unless data are extreme.
        gain: Effect of a token's weight on the loss, in that scale.
        tie: Difference of gains below which two are the same but for rounding.
        pull_head: Takes cotangents of predictions to the head and to the outputs.
    """

    head: Head
    row: SoftmaxRow
    prediction: Float[Array, "sequence query *classes"]
    log_loss: Float[Array, "sequence query"]
    log_gain: Float[Array, "sequence query"]
    gain: Float[Array, "sequence query token"]
    tie: Float[Array, "sequence query token"]
    pull_head: Callable[[Array], tuple[PyTree, Array]]


def cotangents(
    loss: Loss,
    head: Head | eqx.Module,
    scores: Float[Array, "sequence query token"],
    rows: Rows,
) -> Cotangents:
    """Pulls the loss of each row back to its prediction and to its softmax.

    Raises:
        InvalidInputError: If the head does not fit the values.
    """
    # NumPy leaves would count as constants.
    reader: Head = jax.tree.map(jnp.asarray, as_head(head, rows.values.shape[-1]))
    row, outputs = _attend(scores, rows)
    value, pull_head = eqx.filter_vjp(lambda h, o: h(o), reader, outputs)
    prediction = Prediction(value, outputs, reader, row, rows)
    cotangent, log_loss = loss.cotangent_at(prediction, rows.labels)
    gain, tie = token_gains(rows, row, pull_head(cotangent)[1])
    if rows.weights is not None:
        log_loss = log_loss + jnp.log(rows.weights)
    if rows.extreme is None:
        return Cotangents(reader, row, cotangent, log_loss, log_loss, gain, tie, pull_head)
    # Gains are multiplied by keys next, which may be as large, or as small, as they are.
    factor = ordinary_factor(jnp.where(rows.mask, jnp.abs(gain), 0).max(-1, keepdims=True))
    log_gain = log_loss - jnp.log(factor[..., 0])
    gain, tie = gain * factor, tie * factor
    return Cotangents(reader, row, cotangent, log_loss, log_gain, gain, tie, pull_head)


def mean_loss(
    parameterization: Parameterization,
    loss: Loss,
    parameters: PyTree,
    head: Head | eqx.Module,
    rows: Rows,
) -> Float[Array, ""]:
    """The training loss: the mean over all rows of one data set, by their weights if any."""
    reader = as_head(head, rows.values.shape[-1])
    row, outputs = _attend(parameterization.scores(parameters, rows), rows)
    prediction = Prediction(reader(outputs), outputs, reader, row, rows)
    return rows.mean(loss.value_at(prediction, rows.labels))


def _attend(
    scores: Float[Array, "sequence query token"], rows: Rows
) -> tuple[SoftmaxRow, Float[Array, "sequence query v"]]:
    row = softmax_row(scores, rows.mask)
    return row, jnp.einsum("nkt,ntv->nkv", row.probabilities, rows.values)
