"""``first_gradient_margin``: whether a first step of training separates the optimal tokens."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from attractor.attention import (
    AttentionMatrix,
    Head,
    Joint,
    KeyQuery,
    Loss,
    Parameterization,
    get_loss,
    scaled_gradient,
)
from attractor.attention.multi_head import one_attention_head
from attractor.attention.rows import Rows, attention_rows
from attractor.attention.scaled import direction, magnitude
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.support.randomness import traced
from attractor.tokens import Tokens
from attractor.training import validation


class FirstGradientMargin(NamedTuple):
    """The margin by which a first step of gradient descent from zero prefers the selected tokens.

    Attributes:
        margin: ``min (x_it - x_i,selected)^T grad L(0) z_ik`` over all other tokens of all rows,
            ``(*instances)``. The condition holds where it is positive. Infinite where no row has
            another token.
        relative: The same divided by ``||grad L(0)||_F``: the normalized margin of ``W(1)``. NaN
            where the gradient is zero.
    """

    margin: Float[np.ndarray, "*instances"]
    relative: Float[np.ndarray, "*instances"]


def first_gradient_margin(
    tokens: Tokens,
    head: Head,
    *,
    selection: Selection | None = None,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
) -> FirstGradientMargin:
    """The smallest margin by which a gradient step from zero prefers the selected tokens.

        iota = min_{i,k,t}  (x_it - x_i,selected)^T grad L(0) z_ik

    Where iota > 0 for the optimal tokens, gradient descent whose first step ``W(1) = - R grad
    L(0) / ||grad L(0)||`` is long enough, and that stays in the cone of matrices with a normalized
    margin below ``relative``, converges to the globally optimal direction.

    Args:
        tokens: Data sets with labels.
        head: The head.
        selection: The tokens that are to be ahead, with the axes of the tokens; of several in a
            row, all. Default: the optimal ones.
        loss: The loss.
        parameterization: ``"W"``, or ``"p"`` for a prompt vector.

    Raises:
        InvalidInputError: If an argument does not fit; of keys and queries the gradient at zero
            vanishes.

    Source: *Transformers as Support Vector Machines* (arXiv 2308.16898), global convergence with
    good first gradients.
    """
    check_kinds(selection=(selection, Selection | None))
    loss, layer = get_loss(loss), one_attention_head(parameterization, "the condition")
    validation.check_tokens(tokens, loss)
    if isinstance(layer, KeyQuery | Joint):
        raise InvalidInputError(
            "parameterization",
            f"the condition is not one on {layer.name!r}",
            'Use "W" or "p"; the gradient in keys and queries vanishes at zero',
        )
    tokens = layer.prepare(tokens)
    head = validation.check_head(head, tokens)
    validation.check_targets(head, tokens, loss)
    if selection is None:
        selection = optimal_tokens(tokens, head)
    elif selection.mask.shape != tokens.mask.shape:
        raise InvalidInputError(
            "selection",
            f"its mask has shape {selection.mask.shape}",
            f"Select among {tokens.mask.shape}, the shape of tokens.mask",
        )
    gradient, slope = gradients_at_zero(tokens, head, loss)
    with np.errstate(invalid="ignore"):
        # The largest entry first: squares of tiny or huge entries leave the range of floats.
        slope = slope / np.abs(slope).max(axis=(-1, -2), keepdims=True)
        relative = _margin(tokens, selection, slope) / np.linalg.norm(slope, axis=(-1, -2))
    return FirstGradientMargin(_margin(tokens, selection, gradient), relative)


def _margin(
    tokens: Tokens, selection: Selection, gradient: Float[np.ndarray, "*instances d e"]
) -> Float[np.ndarray, "*instances"]:
    """Smallest amount by which scores under minus the gradient prefer selected tokens."""
    scores = tokens.scores(-gradient)
    others = tokens.mask & ~selection.mask
    lowest = np.where(selection.mask & tokens.mask, scores, np.inf).min(-1)
    ahead = lowest[..., None] - np.where(others, scores, -np.inf)
    return np.asarray(np.where(others, ahead, np.inf).min((-1, -2, -3)))


def gradients_at_zero(
    tokens: Tokens, head: Head, loss: Loss
) -> tuple[Float[np.ndarray, "*instances d e"], Float[np.ndarray, "*instances d e"]]:
    """The gradients at zero, and the same up to a positive factor that does not underflow."""
    count, batched = tokens.instances or 1, tokens.instances is not None
    zero = np.zeros((tokens.key_dimension, tokens.query_dimension))
    with double_precision():
        rows = attention_rows(tokens)
        if not batched:
            rows = jax.tree.map(lambda array: array[None], rows)
        heads = head if head.instances is not None else head.for_instances(np.zeros(count, int))
        found = _gradients(loss, zero, heads, rows)
    gradient, slope = (np.asarray(array) for array in found)
    return (gradient, slope) if batched else (gradient[0], slope[0])


@functools.partial(jax.jit, static_argnums=0)
@traced
def _gradients(
    loss: Loss, W: Float[Array, "d e"], heads: Head, rows: Rows
) -> tuple[Float[Array, "instances d e"], Float[Array, "instances d e"]]:
    def one(head: Head, rows: Rows) -> tuple[Array, Array]:
        found = scaled_gradient(AttentionMatrix(), loss, W, head, rows).attention
        return magnitude(found), direction(found)

    return jax.vmap(one)(heads, rows)
