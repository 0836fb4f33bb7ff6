"""The gradient of the training loss with a scale for every entry.

The entries of one array may differ by exp(-1000): where tokens are one-hot, each entry of ``W``
is moved by one token, at the scale of that token's weight. Whoever reads the signs of a gradient,
or divides every entry by its own size, needs all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.gradients.levels import level_range, sum_by_levels
from attractor.attention.gradients.scaled_gradient import ScaledGradient, cotangents
from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.attention.softmax import SoftmaxRow, row_cotangent


def entrywise_gradient(
    parameterization: Parameterization,
    loss: Loss,
    parameters: PyTree,
    head: Head | eqx.Module,
    rows: Rows,
) -> ScaledGradient:
    """Gradient of ``L = mean_ik loss(h(sum_t softmax(s_ik)_t v_it), y_ik)``, entry by entry.

    The gradient is a sum over rows and over the tokens that lose in them,

        mean_ik exp(c_ik) sum_t q_ikt (ds_ikt - ds_ik,lead),

    with c_ik the log scale of the row's loss, and each ``q_ikt`` known as a mantissa with a log
    scale of its own. Terms of very different scales are added up apart (``sum_by_levels``); where
    data are dense there is one scale, and the cost is about that of ``scaled_gradient``.

    Every term is exact to rounding, and so is an entry whose terms do not cancel. One whose terms
    do cancel is as wrong as any sum in floating point: by a rounding of its largest term. That a
    token shares a feature with the leader is no such case: ``x_t - x_lead`` is formed first, and
    is exactly zero there. Nor do the classes of one row have scales of their own: with
    cross-entropy, the weights of a class as improbable as exp(-700) beside the likeliest wrong
    one may get a zero.

    Args:
        parameterization: What the attention parameters mean; its scores are linear in the keys.
        loss: The loss.
        parameters: Attention parameters.
        head: The head, for this data set alone.
        rows: The data set.

    Returns:
        As ``scaled_gradient``, but every log scale has the shape of its array.

    Raises:
        InvalidInputError: If the head does not fit the values.
    """
    parts = parameterization.by_head(parameters)
    back = cotangents(loss, head, [layer.scores(own, rows) for layer, own in parts], rows)
    attention = [
        _attention_gradient(
            one.row, one.gain, one.tie, one.log_gain, _pull_pairs(layer, own, rows, one.row)
        )
        for (layer, own), one in zip(parts, back.heads, strict=True)
    ]
    heads = [
        _head_gradient(one.head, rows, one.row, back.prediction, back.log_loss)
        for one in back.heads
    ]
    return ScaledGradient(
        parameterization.from_heads(attention), back.head_gradient(heads, _sum_of_entries)
    )


def _sum_of_entries(one: Scaled, other: Scaled) -> Scaled:
    """The sum of two arrays with a scale for every entry."""
    common = jnp.maximum(one.log_scale, other.log_scale)
    terms = [each.mantissa * relative(each.log_scale, common) for each in (one, other)]
    return Scaled(terms[0] + terms[1], common)


def _attention_gradient(
    row: SoftmaxRow,
    gain: Float[Array, "sequence query token"],
    tie: Float[Array, "sequence query token"],
    log_loss: Float[Array, "sequence query"],
    pull: Callable[[Float[Array, "sequence query token"]], PyTree],
) -> PyTree[Scaled]:
    """The terms are ``p_t (delta_t - sum_s p_s delta_s)``, ``delta`` the gain beyond the leader's.

    A token's scale is its own weight where ``delta`` is not zero; where it is, that times the
    heaviest such weight.
    """
    mantissa, log_softmax = row_cotangent(row, gain, tie)
    difference = gain - jnp.where(row.leader, gain, 0).sum(-1, keepdims=True)
    live = row.mask & (jnp.abs(difference) > tie)
    log_rows, heaviest = log_softmax + log_loss, log_softmax[..., None]
    log_terms = jnp.where(live, row.gap, row.gap + heaviest) + log_loss[..., None]
    log_terms = jnp.where(row.leader, -jnp.inf, log_terms)
    largest = common_log_scale(log_rows)

    def first(floor: Array) -> PyTree:
        share = relative(log_rows, largest) / log_loss.size
        return pull(jnp.where(log_terms >= floor, mantissa * share[..., None], 0))

    def later(share: Array) -> PyTree:
        exchanged = jnp.where(live, relative(row.gap, heaviest) * difference, 0)
        mean = exchanged.sum(-1, keepdims=True) / row.total
        own = jnp.where(live, difference - jnp.exp(heaviest) * mean, -mean) / row.total
        return pull(own * share / log_loss.size)

    return sum_by_levels(first, later, log_terms, largest)


def _pull_pairs(
    parameterization: Parameterization, parameters: PyTree, rows: Rows, row: SoftmaxRow
) -> Callable[[Float[Array, "sequence query token"]], PyTree]:
    """The derivative of ``scores - leading score``, transposed."""
    leaders = row.leader.argmax(-1)

    def pull_query(
        queries: Float[Array, "sequence e"],
        leader: Float[Array, "sequence"],
        cotangent: Float[Array, "sequence token"],
    ) -> PyTree:
        lead = jnp.take_along_axis(rows.keys, leader[:, None, None], axis=1)
        pairs = rows._replace(keys=rows.keys - lead, queries=queries[:, None])
        _, pull = jax.vjp(lambda p: parameterization.scores(p, pairs), parameters)
        return pull(cotangent[:, None])[0]

    def pull(cotangent: Float[Array, "sequence query token"]) -> PyTree:
        if cotangent.shape[1] == 1:
            return pull_query(rows.queries[:, 0], leaders[:, 0], cotangent[:, 0])
        # One query after another: the pairs of all queries at once would fill the memory.
        by_query = tuple(array.swapaxes(0, 1) for array in (rows.queries, leaders, cotangent))
        return jax.lax.scan(
            lambda total, query: (jax.tree.map(jnp.add, total, pull_query(*query)), None),
            jax.tree.map(jnp.zeros_like, parameters),
            by_query,
        )[0]

    return pull


def _head_gradient(
    head: Head,
    rows: Rows,
    row: SoftmaxRow,
    cotangent: Float[Array, "sequence query *classes"],
    log_loss: Float[Array, "sequence query"],
) -> PyTree[Scaled]:
    """In the arrays of the head.

    A token of tiny weight moves those entries that no heavier token reaches. Such tokens are
    left out of the outputs, and come back to first order, each at its own scale.
    """
    trained, fixed = eqx.partition(head, eqx.is_inexact_array)
    light = row.gap < -level_range(row.gap.dtype)
    kept = jnp.einsum("nkt,ntv->nkv", jnp.where(light, 0, row.probabilities), rows.values)
    largest = common_log_scale(log_loss)

    def gradient(outputs: Array, cotangent: Array) -> PyTree:
        _, pull = jax.vjp(lambda arrays: eqx.combine(arrays, fixed)(outputs), trained)
        return pull(cotangent)[0]

    def pull(share: Array) -> PyTree:
        along_classes = (1,) * (cotangent.ndim - share.ndim)
        share = share.reshape(share.shape + along_classes) / log_loss.size
        return gradient(kept, cotangent * share)

    def first(floor: Array) -> PyTree:
        return pull(jnp.where(log_loss >= floor, relative(log_loss, largest), 0))

    def later(shares: tuple[Array, Array]) -> PyTree:
        rows_share, tokens_share = shares
        weights = tokens_share / row.total / log_loss.size
        light_outputs = jnp.einsum("nkt,ntv->nkv", weights, rows.values)
        moved = jax.jvp(lambda outputs: gradient(outputs, cotangent), (kept,), (light_outputs,))[1]
        return jax.tree.map(jnp.add, pull(rows_share), moved)

    light_terms = jnp.where(light, row.gap, -jnp.inf) + log_loss[..., None]
    return sum_by_levels(first, later, (log_loss, light_terms), largest)
