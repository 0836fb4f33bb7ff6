"""The gradient of the training loss at every magnitude.

Gradients reach exp(-5000), which no array holds. Backward differentiation is linear, so a factor
taken out of a cotangent passes through untouched: the graph is cut at the softmax and at the
loss, where the factors arise, one for each row, and automatic differentiation does the rest.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.heads import Head, PredictionHeads, as_head
from attractor.attention.heads.prediction_heads import by_attention_head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.prediction import HeadOutput, Prediction, token_gains
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.attention.softmax import SoftmaxRow, row_cotangent, softmax_row
from attractor.geometry.vectors import ordinary_factor


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

    With several attention heads the prediction is the sum over them. Each has scales of its own:
    the gradient of one may be exp(-1000) times that of another.

    The mean is weighted where the rows have weights. Each row carries a scale of its own, from its
    softmax and from its loss; only where rows are added up are they brought to the largest. Rows
    with a single token contribute nothing, but count in the mean.

    Args:
        parameterization: What the attention parameters mean.
        loss: The loss.
        parameters: Attention parameters.
        head: The head, for this data set alone; or an Equinox module from one output to one
            prediction, whose gradient comes as that of the ``ModuleHead`` made of it. Several
            attention heads share it, or have one each in a list.
        rows: The data set.

    Raises:
        InvalidInputError: If the head does not fit the values.
    """
    parts = parameterization.by_head(parameters)
    scores, pulls = zip(*[_scores_and_pull(layer, own, rows) for layer, own in parts], strict=True)
    back = cotangents(loss, head, scores, rows)
    attention = []
    for one, pull in zip(back.heads, pulls, strict=True):
        mantissa, log_softmax = row_cotangent(one.row, one.gain, one.tie)
        log_rows = log_softmax + one.log_gain
        scale = common_log_scale(log_rows)
        share = relative(log_rows, scale) / log_rows.size
        (found,) = pull(mantissa * share[..., None])
        attention.append(jax.tree.map(functools.partial(_with_scale, scale), found))

    head_scale = common_log_scale(back.log_loss)
    head_share = relative(back.log_loss, head_scale) / back.log_loss.size
    along_classes = (1,) * (back.prediction.ndim - head_share.ndim)
    weighted = back.prediction * head_share.reshape(head_share.shape + along_classes)
    found = jax.tree.map(
        functools.partial(_with_scale, head_scale),
        back.head_gradient([one.pull_head(weighted)[0] for one in back.heads], operator.add),
    )
    return ScaledGradient(parameterization.from_heads(attention), found)


def _scores_and_pull(layer: Parameterization, parameters: PyTree, rows: Rows) -> tuple[Array, Any]:
    """The scores of one attention head, and their derivative transposed."""
    return jax.vjp(lambda own: layer.scores(own, rows), parameters)


def _with_scale(log_scale: Float[Array, ""], leaf: Array) -> Scaled:
    return Scaled(leaf, log_scale)


class HeadCotangents(NamedTuple):
    """The loss pulled back to the softmax of one attention head.

    Attributes:
        head: The prediction head, its arrays those of JAX.
        row: The softmax.
        log_gain: Logarithm of the scale of gains: that of the loss unless data are extreme.
        gain: Effect of a token's weight on the loss, in that scale.
        tie: Difference of gains below which two are the same but for rounding.
        pull_head: Takes cotangents of predictions to the head and to the outputs.
    """

    head: Head
    row: SoftmaxRow
    log_gain: Float[Array, "sequence query"]
    gain: Float[Array, "sequence query token"]
    tie: Float[Array, "sequence query token"]
    pull_head: Callable[[Array], tuple[PyTree, Array]]


class Cotangents(NamedTuple):
    """The loss pulled back to where each row takes its scale: to its prediction, to its softmax.

    Attributes:
        prediction: Mantissa of the derivative of the loss in the prediction.
        log_loss: Logarithm of its scale, with that of the weight of the row.
        heads: What follows of each attention head.
        reader: The prediction head, or heads.
    """

    prediction: Float[Array, "sequence query *classes"]
    log_loss: Float[Array, "sequence query"]
    heads: list[HeadCotangents]
    reader: Head

    def head_gradient(self, parts: list[PyTree], add: Callable[[Any, Any], Any]) -> PyTree:
        """Gradients in the prediction head of each attention head, as one in all of them.

        Args:
            parts: The gradients.
            add: Adds up two entries, of a prediction head that attention heads share.
        """
        if isinstance(self.reader, PredictionHeads):
            return eqx.tree_at(lambda heads: heads.each, self.reader, tuple(parts))
        return functools.reduce(lambda one, other: jax.tree.map(add, one, other), parts)


def cotangents(
    loss: Loss,
    head: Head | eqx.Module,
    scores: Sequence[Float[Array, "sequence query token"]],
    rows: Rows,
) -> Cotangents:
    """Pulls the loss of each row back to its prediction and to its softmax.

    Args:
        loss: The loss.
        head: The prediction head, or heads.
        scores: Those of each attention head.
        rows: The data set.

    Raises:
        InvalidInputError: If the head does not fit the values.
    """
    # NumPy leaves would count as constants.
    reader: Head = jax.tree.map(jnp.asarray, as_head(head, rows.values.shape[-1]))
    parts, pulls = [], []
    for own, each in zip(scores, by_attention_head(reader, len(scores)), strict=True):
        row, outputs = _attend(own, rows)
        value, pull_head = eqx.filter_vjp(lambda h, o: h(o), each, outputs)
        parts.append(HeadOutput(value, outputs, each, row))
        pulls.append(pull_head)
    cotangent, log_loss = loss.cotangent_at(Prediction.of(parts, rows), rows.labels)
    gains = [
        token_gains(rows, part.row, pull(cotangent)[1])
        for part, pull in zip(parts, pulls, strict=True)
    ]
    if rows.weights is not None:
        log_loss = log_loss + jnp.log(rows.weights)
    heads = []
    for part, pull, (gain, tie) in zip(parts, pulls, gains, strict=True):
        log_gain = log_loss
        if rows.extreme is not None:
            # Gains are multiplied by keys next, which may be as large, or as small, as they are.
            size = jnp.where(rows.mask, jnp.abs(gain), 0).max(-1, keepdims=True)
            factor = ordinary_factor(size)
            log_gain = log_loss - jnp.log(factor[..., 0])
            gain, tie = gain * factor, tie * factor
        heads.append(HeadCotangents(part.head, part.row, log_gain, gain, tie, pull))
    return Cotangents(cotangent, log_loss, heads, reader)


def mean_loss(
    parameterization: Parameterization,
    loss: Loss,
    parameters: PyTree,
    head: Head | eqx.Module,
    rows: Rows,
) -> Float[Array, ""]:
    """The training loss: the mean over all rows of one data set, by their weights if any."""
    reader = as_head(head, rows.values.shape[-1])
    parts, found = parameterization.by_head(parameters), []
    for (layer, own), each in zip(parts, by_attention_head(reader, len(parts)), strict=True):
        row, outputs = _attend(layer.scores(own, rows), rows)
        found.append(HeadOutput(each(outputs), outputs, each, row))
    return rows.mean(loss.value_at(Prediction.of(found, rows), rows.labels))


def _attend(
    scores: Float[Array, "sequence query token"], rows: Rows
) -> tuple[SoftmaxRow, Float[Array, "sequence query v"]]:
    row = softmax_row(scores, rows.mask)
    return row, jnp.einsum("nkt,ntv->nkv", row.probabilities, rows.values)
