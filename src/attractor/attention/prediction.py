"""Predictions of attention rows, and their distance from a target far below rounding."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attractor.attention.heads import Head
from attractor.attention.rows import Rows
from attractor.attention.scaled import relative
from attractor.attention.softmax import SoftmaxRow, mean_difference
from attractor.geometry import lengths

_TIE_ROUNDINGS = 4
"""Roundings, relative to |u| |x|, within which two tokens have the same effect on the loss."""
_TARGET_ROUNDINGS = 8
"""Roundings within which a prediction meets its target."""


class HeadOutput(NamedTuple):
    """What one attention head contributes to predictions, with what it was computed from.

    Attributes:
        value: The contributions ``h(o)``, with a last axis of classes for logits.
        outputs: What attention returned, ``o = sum_t p_t x_t``.
        head: The prediction head.
        row: The softmax of every row.
    """

    value: Float[Array, "sequence query ..."]
    outputs: Float[Array, "sequence query v"]
    head: Head
    row: SoftmaxRow


class Prediction(NamedTuple):
    """Predictions for every row of one data set, with what they were computed from.

    Attributes:
        value: The predictions, the sum over attention heads, with a last axis of classes for
            logits.
        parts: What each attention head contributes.
        rows: The data set.
    """

    value: Float[Array, "sequence query ..."]
    parts: tuple[HeadOutput, ...]
    rows: Rows

    @classmethod
    def of(cls, parts: Sequence[HeadOutput], rows: Rows) -> Prediction:
        """The sum of contributions."""
        return cls(added(part.value for part in parts), tuple(parts), rows)

    def residual(
        self, target: Float[Array, "sequence query"]
    ) -> tuple[Float[Array, "sequence query"], Float[Array, "sequence query"]]:
        """The distance ``f - y`` of predictions from a target, free of cancellation.

        It is what the leading tokens leave and what the others add, by attention head,

            f - y = (sum h(x_lead) - y) + sum sum_t p_t <g, x_t - x_lead>,

        with g the gradient averaged over the segment from ``x_lead`` to ``o``. The first part
        counts as zero where it is no more than rounding: the target is one that can be met.

        Returns:
            The mantissa and the logarithm of the scale of each row.
        """
        heads = [_led(part, self.rows) for part in self.parts]
        left = added(one.kept for one in heads) - target
        unit = _TARGET_ROUNDINGS * jnp.finfo(left.dtype).eps
        missed = jnp.abs(left) > unit * (added(one.reach for one in heads) + jnp.abs(target))
        moved, log_scale = _summed([(one.moved, one.log_scale) for one in heads])
        mantissa = jnp.where(missed, left + moved * jnp.exp(log_scale), moved)
        return mantissa, jnp.where(missed, 0, log_scale)


class _Led(NamedTuple):
    """Predictions for leading tokens, the reach of these, and what the other tokens add."""

    kept: Float[Array, "sequence query"]
    reach: Float[Array, "sequence query"]
    moved: Float[Array, "sequence query"]
    log_scale: Float[Array, "sequence query"]


def _led(part: HeadOutput, rows: Rows) -> _Led:
    kept = part.row.leader.astype(part.outputs.dtype)
    leader = jnp.einsum("nkt,ntv->nkv", kept, rows.values)
    slope = part.head.mean_gradient(leader, part.outputs)
    moved = mean_difference(part.row, *token_gains(rows, part.row, slope))
    return _Led(part.head(leader), part.head.reach(leader), *moved)


def added(terms: Iterable[Array]) -> Array:
    """The sum of some arrays; one alone is left as it is."""
    return functools.reduce(operator.add, terms)


def _summed(terms: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The sum of numbers given by mantissas and logarithms of scales."""
    if len(terms) == 1:
        return terms[0]
    common = functools.reduce(jnp.maximum, (log_scale for _, log_scale in terms))
    return added(each * relative(log_scale, common) for each, log_scale in terms), common


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
