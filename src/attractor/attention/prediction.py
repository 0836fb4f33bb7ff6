"""Predictions of attention rows, and their distance from a target far below rounding."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attractor.attention.heads import Head
from attractor.attention.rows import Rows
from attractor.attention.softmax import SoftmaxRow, mean_difference
from attractor.geometry import lengths

_TIE_ROUNDINGS = 4
"""Roundings, relative to |u| |x|, within which two tokens have the same effect on the loss."""
_TARGET_ROUNDINGS = 8
"""Roundings within which a prediction meets its target."""


class Prediction(NamedTuple):
    """Predictions of a head for every row of one data set, with what they were computed from.

    Attributes:
        value: The predictions ``h(o)``, with a last axis of classes for logits.
        outputs: What attention returned, ``o = sum_t p_t x_t``.
        head: The head.
        row: The softmax of every row.
        rows: The data set.
    """

    value: Float[Array, "sequence query ..."]
    outputs: Float[Array, "sequence query v"]
    head: Head
    row: SoftmaxRow
    rows: Rows

    def residual(
        self, target: Float[Array, "sequence query"]
    ) -> tuple[Float[Array, "sequence query"], Float[Array, "sequence query"]]:
        """The distance ``h(o) - y`` from a target, free of cancellation.

        It is what the leading token leaves and what the others add,

            h(o) - y = (h(x_lead) - y) + sum_t p_t <g, x_t - x_lead>,

        with g the gradient averaged over the segment from ``x_lead`` to ``o``. The first part
        counts as zero where it is no more than rounding: the target is one that can be met.

        Returns:
            The mantissa and the logarithm of the scale of each row.
        """
        kept = self.row.leader.astype(self.outputs.dtype)
        leader = jnp.einsum("nkt,ntv->nkv", kept, self.rows.values)
        left = self.head(leader) - target
        unit = _TARGET_ROUNDINGS * jnp.finfo(left.dtype).eps
        missed = jnp.abs(left) > unit * (self.head.reach(leader) + jnp.abs(target))
        slope = self.head.mean_gradient(leader, self.outputs)
        added, log_scale = mean_difference(self.row, *token_gains(self.rows, self.row, slope))
        mantissa = jnp.where(missed, left + added * jnp.exp(log_scale), added)
        return mantissa, jnp.where(missed, 0, log_scale)


def token_gains(
    rows: Rows, row: SoftmaxRow, push: Float[Array, "sequence query v"]
) -> tuple[Float[Array, "sequence query token"], Float[Array, "sequence query token"]]:
    """Effect ``<push, x_t>`` of the weight of every token, and how far rounding can move it.

    Args:
        rows: The data set.
        row: The softmax of every row.
        push: Direction in token space, a vector a row.

    Returns:
        The effects, and the difference from the leader's that rounding alone may make.
    """
    gain = jnp.einsum("ntv,nkv->nkt", rows.values, push)
    norms = rows.value_norms[..., None, :]
    reach = norms + jnp.where(row.leader, norms, 0).sum(-1, keepdims=True)
    unit = _TIE_ROUNDINGS * jnp.finfo(push.dtype).eps
    if rows.extreme is None:
        pushed = jnp.linalg.norm(push, axis=-1, keepdims=True)
    else:
        pushed = lengths(push, keepdims=True)
    return gain, unit * pushed * reach
