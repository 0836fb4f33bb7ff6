"""Whether a training loss lies below its chords."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attractor.attention import (
    Head,
    Loss,
    Rows,
    attention_rows,
    get_parameterization as parameterization_named,
    mean_loss,
)
from attractor.corpora.mechanics._cyclic_subspace import CyclicSubspace
from attractor.support.checks import check_count, check_number, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.support.randomness import generator
from attractor.tokens import Tokens
from attractor.training.inputs import check_inputs

_ROUNDINGS = 16
"""Roundings of the losses at the ends of a chord within which a height is noise."""


@dataclass(frozen=True, eq=False, repr=False)
class ChordTest:
    """Heights of chords above a loss: ``(1 - s) L(V) + s L(W) - L((1 - s) V + s W)``.

    Attributes:
        heights: Height of each chord above the loss at its inner point; negative where the loss
            is not convex.
        curvatures: The height divided by ``s (1 - s) ||V - W||^2 / 2``: a second derivative
            averaged along the chord.
        rounding: A bound on the rounding error of each height.
    """

    heights: Float[np.ndarray, "instances chords"]
    curvatures: Float[np.ndarray, "instances chords"]
    rounding: Float[np.ndarray, "instances chords"]

    @property
    def violations(self) -> Int[np.ndarray, "instances"]:
        """Number of chords below the loss at their inner points, by more than rounding."""
        return (self.heights < -self.rounding).sum(-1)

    @property
    def strict(self) -> Int[np.ndarray, "instances"]:
        """Number of chords above the loss, by more than rounding."""
        return (self.heights > self.rounding).sum(-1)

    def __repr__(self) -> str:
        return (
            f"ChordTest({self.violations.sum()} violations in {self.heights.size:,} chords, "
            f"{self.strict.sum():,} strictly above)"
        )


def chord_test(
    tokens: Tokens,
    head: Head,
    loss: str | Loss = "negative_log",
    *,
    chords: int = 400,
    size: float = 1.0,
    seed: int = 0,
    along: CyclicSubspace | list[CyclicSubspace] | None = None,
) -> ChordTest:
    """Compares a training loss, as a function of W, with random chords.

    Both ends of a chord are Gaussian matrices, and its inner point is uniform on it. The loss of
    label mass is convex in W, and strictly so along the cyclic subspace; other heads and losses
    are not. Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081),
    convexity of the training loss.

    Args:
        tokens: The data sets.
        head: The head.
        loss: The loss.
        chords: Number of chords for each instance.
        size: Standard deviation of the entries of both ends.
        seed: Names the random numbers, together with the number of the instance.
        along: The cyclic subspace, or one for each instance: the ends of a chord then differ by a
            Gaussian matrix of it alone.

    Raises:
        InvalidInputError: If an argument does not fit, or a subspace is {0}.
    """
    inputs = check_inputs(
        tokens, head, loss=loss, parameterization="W", initial=None, seeds=1, seed=seed
    )
    chords = check_count("chords", chords)
    size = check_number("size", size, least=1e-100, most=1e100, example=1.0)
    count = inputs.count
    spaces: list[CyclicSubspace | None] = [None] * count
    if along is not None:
        listed, several = one_or_several("along", along, CyclicSubspace)
        spaces = [*listed] if several else [*listed] * count
    if len(spaces) != count or any(space is not None and not space.dimension for space in spaces):
        raise InvalidInputError(
            "along",
            f"there are {len(spaces)} for {count} instances, or one is {{0}}",
            "Give a subspace of positive dimension for each",
        )
    ends = []
    for number, space in zip(tokens.instance_numbers.tolist(), spaces, strict=True):
        draws = generator(seed, number, purpose="chords")
        shape = (chords, tokens.key_dimension, tokens.query_dimension)
        first, second = size * draws.normal(size=(2, *shape))
        if space is not None:
            second = first + space.project(second)
        ends.append((first, second, draws.random((chords, 1, 1))))
    first, second, share = (np.stack(parts) for parts in zip(*ends, strict=True))
    inner = (1 - share) * first + share * second
    with double_precision():
        rows, heads = _with_instances(attention_rows(tokens), head, tokens)
        at = [np.asarray(_losses(inputs.loss, heads, rows, W)) for W in (first, second, inner)]
    s = share[..., 0, 0]
    scale = s * (1 - s) * ((first - second) ** 2).sum((-1, -2)) / 2
    heights = (1 - s) * at[0] + s * at[1] - at[2]
    rounding = _ROUNDINGS * np.finfo(float).eps * (np.abs(at[0]) + np.abs(at[1]))
    return ChordTest(heights, heights / scale, rounding)


def _with_instances(rows: Rows, head: Head, tokens: Tokens) -> tuple[Any, Any]:
    """Rows and heads with an axis of instances."""
    if tokens.instances is None:
        return jax.tree.map(lambda leaf: leaf[None], (rows, head))
    shared = head.instances is None
    return rows, head.for_instances(np.arange(tokens.instances)) if shared else head


@functools.partial(jax.jit, static_argnums=0)
def _losses(
    loss: Loss, heads: Head, rows: Rows, W: Float[Array, "instances chords d e"]
) -> Float[Array, "instances chords"]:
    layer: Any = parameterization_named("W")

    def one(head: Head, rows: Rows, W: Array) -> Array:
        return jax.vmap(lambda matrix: mean_loss(layer, loss, matrix, head, rows))(W)

    return jax.vmap(one)(heads, rows, jnp.asarray(W))
