"""The gradient by automatic differentiation of the softmax, as published code takes it.

``softmax * (g - <softmax, g>)`` is a difference of numbers that agree in all digits once the gap
between the top two scores passes about 16 in single precision, or 36 in double. It is here to
show what that does to training, and as the other side of benchmarks.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from attractor.attention.gradients.scaled_gradient import ScaledGradient
from attractor.attention.heads import Head, as_head
from attractor.attention.heads.prediction_heads import by_attention_head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.prediction import HeadOutput, Prediction
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled
from attractor.attention.softmax import softmax_row


def plain_gradient(
    parameterization: Parameterization,
    loss: Loss,
    parameters: PyTree,
    head: Head | eqx.Module,
    rows: Rows,
) -> ScaledGradient:
    """Gradient of ``L = mean_ik loss(h(sum_t softmax(s_ik)_t v_it), y_ik)``, with cancellation.

    Args:
        parameterization: What the attention parameters mean.
        loss: The loss.
        parameters: Attention parameters.
        head: The head, for this data set alone, or an Equinox module.
        rows: The data set.

    Returns:
        The gradient in the form of ``scaled_gradient``, with scales of zero.
    """
    reader = jax.tree.map(jnp.asarray, as_head(head, rows.values.shape[-1]))
    learned, fixed = eqx.partition(reader, eqx.is_inexact_array)

    def objective(attention: PyTree, learned: PyTree) -> Array:
        parts = parameterization.by_head(attention)
        heads = by_attention_head(eqx.combine(learned, fixed), len(parts))
        found = []
        for (layer, own), whole in zip(parts, heads, strict=True):
            scores = layer.scores(own, rows)
            probabilities = jax.nn.softmax(jnp.where(rows.mask, scores, -jnp.inf), axis=-1)
            outputs = jnp.einsum("nkt,ntv->nkv", probabilities, rows.values)
            row = softmax_row(scores, rows.mask)
            found.append(HeadOutput(whole(outputs), outputs, whole, row))
        return rows.mean(loss.value_at(Prediction.of(found, rows), rows.labels))

    attention, learned = jax.grad(objective, (0, 1))(parameters, learned)
    return ScaledGradient(jax.tree.map(_unscaled, attention), jax.tree.map(_unscaled, learned))


def _unscaled(leaf: Array) -> Scaled:
    return Scaled(leaf, jnp.zeros((), leaf.dtype))
