"""Numbers too small or too large for floating point: a mantissa and the logarithm of a scale."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


class Scaled:
    """The array ``mantissa * exp(log_scale)``, with one scale for all entries or one for each.

    It is opaque on purpose: neither a JAX pytree nor something arithmetic works on. As a pytree, a
    transformation that multiplies every leaf would multiply the logarithm too and corrupt the
    number without a word; as it is, such a transformation raises.

    Attributes:
        mantissa: An array of ordinary magnitude.
        log_scale: A scalar, or an array of the shape of the mantissa; minus infinity for exactly
            zero.
    """

    __array_ufunc__ = None  # NumPy scalars must not treat it as an object array either
    __slots__ = ("log_scale", "mantissa")

    def __init__(self, mantissa: Float[Array, "..."], log_scale: Float[Array, "..."]) -> None:
        """Joins a mantissa and the logarithm of its scale."""
        self.mantissa = mantissa
        self.log_scale = log_scale

    def __repr__(self) -> str:
        return f"Scaled(mantissa={self.mantissa}, log_scale={self.log_scale})"


def magnitude(gradient: PyTree[Scaled]) -> PyTree[Float[Array, "..."]]:
    """The true values, as far as floating point can hold them: tiny ones underflow to zero."""

    def apply(scaled: Scaled) -> Array:
        # In two halves, because a large mantissa can bring back a scale that alone underflows.
        half = jnp.exp(scaled.log_scale / 2)
        return scaled.mantissa * half * half

    return jax.tree.map(apply, gradient)


def direction(gradient: PyTree[Scaled]) -> PyTree[Float[Array, "..."]]:
    """The values up to one positive factor that all leaves share, free of underflow."""
    leaves = jax.tree.leaves(gradient)
    if len(leaves) == 1 and not jnp.ndim(leaves[0].log_scale):
        return leaf_directions(gradient)
    common = common_log_scale(jnp.stack([_largest_scale(leaf) for leaf in leaves]))
    return jax.tree.map(lambda leaf: leaf.mantissa * relative(leaf.log_scale, common), gradient)


def leaf_directions(gradient: PyTree[Scaled]) -> PyTree[Float[Array, "..."]]:
    """Every leaf up to a positive factor of its own."""

    def apply(scaled: Scaled) -> Array:
        if not jnp.ndim(scaled.log_scale):
            return scaled.mantissa
        return scaled.mantissa * relative(scaled.log_scale, _largest_scale(scaled))

    return jax.tree.map(apply, gradient)


def entry_directions(gradient: PyTree[Scaled]) -> PyTree[Float[Array, "..."]]:
    """Every entry up to a positive factor of its own, so that only its sign has a meaning."""
    return jax.tree.map(lambda leaf: leaf.mantissa, gradient)


def log_norm(gradient: PyTree[Scaled]) -> Float[Array, ""]:
    """Logarithm of the Euclidean norm over all leaves, minus infinity for zero."""
    logs = [_log_frobenius(leaf) for leaf in jax.tree.leaves(gradient)]
    return jax.nn.logsumexp(2 * jnp.stack(logs)) / 2


def add_multiple(
    gradient: PyTree[Scaled], factor: float | Float[Array, ""], parameters: PyTree
) -> PyTree[Scaled]:
    """The sum ``gradient + factor * parameters``, with neither lost where it is small.

    Args:
        gradient: One ``Scaled`` for each leaf of the parameters.
        factor: Positive.
        parameters: Arrays of ordinary magnitude.
    """
    log_factor = jnp.log(factor)

    def add(scaled: Scaled, leaf: Array) -> Scaled:
        present = jnp.where(leaf != 0, log_factor, -jnp.inf)
        if not jnp.ndim(scaled.log_scale):
            present = present.max()
        common = jnp.maximum(scaled.log_scale, present)
        held = scaled.mantissa * relative(scaled.log_scale, common)
        return Scaled(held + leaf * relative(present, common), common)

    return jax.tree.map(add, gradient, parameters)


def common_log_scale(log_scales: Float[Array, "..."]) -> Float[Array, ""]:
    """The largest of some scales: what numbers that are to be added are measured in."""
    return log_scales.max()


def relative(log_scale: Float[Array, "..."] | Any, common: Float[Array, "..."]) -> Array:
    """Factor from one scale to another, zero where the number is exactly zero."""
    finite = jnp.where(jnp.isneginf(common), 0, common)
    return jnp.exp(jnp.where(jnp.isneginf(common), -jnp.inf, log_scale - finite))


def _largest_scale(scaled: Scaled) -> Float[Array, ""]:
    if not jnp.ndim(scaled.log_scale):
        return scaled.log_scale
    return common_log_scale(jnp.where(scaled.mantissa != 0, scaled.log_scale, -jnp.inf))


def _log_frobenius(scaled: Scaled) -> Float[Array, ""]:
    scale = _largest_scale(scaled)
    mantissa = scaled.mantissa
    if jnp.ndim(scaled.log_scale):
        mantissa = mantissa * relative(scaled.log_scale, scale)
    largest = jnp.abs(mantissa).max()
    unit = jnp.where(largest > 0, largest, 1)
    return scale + jnp.log(unit) + jnp.log(((mantissa / unit) ** 2).sum()) / 2
