"""Sums of terms of all magnitudes, with a scale for every entry of the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.gradients.conditional import cond_for_any
from attractor.attention.scaled import Scaled, relative

_RESERVE = 24.0
"""Logarithm of the factor by which a linear map may favor a small term over a large one."""


def level_range(dtype: Any) -> float:
    """Logarithm of the ratio of the largest to the smallest term of a level.

    Two thirds of what floating point holds, so that products with data do not leave it.
    """
    return math.log(jnp.finfo(dtype).max) * 2 / 3


def sum_by_levels(
    first: Callable[[Array], PyTree],
    later: Callable[[PyTree], PyTree],
    log_terms: PyTree[Float[Array, "..."]],
    largest: Float[Array, ""],
) -> PyTree[Scaled]:
    """Image under a linear map of terms known as mantissas and log scales.

    A level is all the terms within a range that floating point holds, the first one those next to
    the largest. Levels are added, each measured in its own largest term, until every entry of the
    result is so large beside the terms below that they could not change it. An entry that no term
    moves counts as waiting for one.

    Args:
        first: The image of all terms no lower than a floor, measured in ``largest``.
        later: The image of terms whose scales are given as numbers; zero leaves a term out.
        log_terms: Logarithms of the scales of all terms.
        largest: The highest of them.

    Returns:
        Arrays with a log scale for each entry, minus infinity where it is zero.
    """
    dtype = largest.dtype
    reach = level_range(dtype)
    noticeable = _RESERVE - math.log(jnp.finfo(dtype).eps)

    def largest_below(floor: Array) -> Array:
        logs = jax.tree.leaves(log_terms)
        return jnp.stack([jnp.where(log < floor, log, -jnp.inf).max() for log in logs]).max()

    def unsettled(mantissas: PyTree, scales: PyTree, rest: Array) -> Array:
        def margin(mantissa: Array, scale: Array) -> Array:
            return (jnp.abs(mantissa) - relative(rest + noticeable, scale)).min()

        margins = jax.tree.leaves(jax.tree.map(margin, mantissas, scales))
        return (jnp.stack(margins).min() <= 0) & ~jnp.isneginf(rest)

    def add_level(carry: tuple) -> tuple:
        mantissas, scales, scale, _ = carry
        floor = scale - reach
        share = jax.tree.map(
            lambda log: jnp.where((log <= scale) & (log >= floor), relative(log, scale), 0),
            log_terms,
        )
        scales = jax.tree.map(
            lambda mantissa, old: jnp.where(mantissa != 0, old, scale), mantissas, scales
        )
        mantissas = jax.tree.map(
            lambda mantissa, more, to: mantissa + more * relative(scale, to),
            mantissas,
            later(share),
            scales,
        )
        rest = largest_below(floor)
        return mantissas, scales, rest, unsettled(mantissas, scales, rest)

    floor = largest - reach
    mantissas, rest = first(floor), largest_below(floor)
    common = jax.tree.map(lambda _: largest, mantissas)
    scales = jax.tree.map(lambda leaf: jnp.broadcast_to(largest, leaf.shape), mantissas)
    more = unsettled(mantissas, common, rest)
    # Entering a loop that ends at once costs more than a branch that is not taken.
    mantissas, scales, *_ = cond_for_any(
        more,
        lambda carry: jax.lax.while_loop(lambda carry: carry[-1], add_level, carry),
        lambda carry: carry,
        (mantissas, scales, rest, more),
    )
    return jax.tree.map(
        lambda mantissa, scale: Scaled(mantissa, jnp.where(mantissa != 0, scale, -jnp.inf)),
        mantissas,
        scales,
    )
