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

from attractor.attention.heads import Head, as_head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.prediction import Prediction, token_gains
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.attention.softmax import row_cotangent, softmax_row


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

    Each row carries a scale of its own, from its softmax and from its loss; only where rows are
    added up are they brought to the largest. Rows with a single token contribute nothing, but
    count in the mean.

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
    # NumPy leaves would count as constants.
    reader = jax.tree.map(jnp.asarray, as_head(head, rows.values.shape[-1]))
    scores, pull_attention = jax.vjp(lambda p: parameterization.scores(p, rows), parameters)
    row = softmax_row(scores, rows.mask)
    outputs = jnp.einsum("nkt,ntv->nkv", row.probabilities, rows.values)
    value, pull_head = eqx.filter_vjp(lambda h, o: h(o), reader, outputs)
    cotangent, log_loss = loss.cotangent_at(
        Prediction(value, outputs, reader, row, rows), rows.labels
    )
    _, push = pull_head(cotangent)
    mantissa, log_softmax = row_cotangent(row, *token_gains(rows, row, push))

    log_rows = log_softmax + log_loss
    scale, head_scale = common_log_scale(log_rows), common_log_scale(log_loss)
    share = relative(log_rows, scale) / log_rows.size
    head_share = relative(log_loss, head_scale) / log_loss.size
    (attention,) = pull_attention(mantissa * share[..., None])
    along_classes = (1,) * (cotangent.ndim - head_share.ndim)
    head_mantissa, _ = pull_head(cotangent * head_share.reshape(head_share.shape + along_classes))
    return ScaledGradient(
        jax.tree.map(lambda leaf: Scaled(leaf, scale), attention),
        jax.tree.map(lambda leaf: Scaled(leaf, head_scale), head_mantissa),
    )


def mean_loss(
    parameterization: Parameterization,
    loss: Loss,
    parameters: PyTree,
    head: Head | eqx.Module,
    rows: Rows,
) -> Float[Array, ""]:
    """The training loss, the mean over all rows of one data set."""
    reader = as_head(head, rows.values.shape[-1])
    row = softmax_row(parameterization.scores(parameters, rows), rows.mask)
    outputs = jnp.einsum("nkt,ntv->nkv", row.probabilities, rows.values)
    prediction = Prediction(reader(outputs), outputs, reader, row, rows)
    return loss.value_at(prediction, rows.labels).mean()
