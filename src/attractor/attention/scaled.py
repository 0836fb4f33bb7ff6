"""Numbers too small or too large for floating point: a mantissa and the logarithm of a scale."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


class Scaled:
    """The array ``mantissa * exp(log_scale)``, with one scale for all its entries.

    It is opaque on purpose: neither a JAX pytree nor something arithmetic works on. As a pytree, a
    transformation that multiplies every leaf would multiply the logarithm too and corrupt the
    number without a word; as it is, such a transformation raises.

    Attributes:
        mantissa: An array of ordinary magnitude.
        log_scale: A scalar; minus infinity for exactly zero.
    """

    __array_ufunc__ = None  # NumPy scalars must not treat it as an object array either
    __slots__ = ("log_scale", "mantissa")

    def __init__(self, mantissa: Float[Array, "..."], log_scale: Float[Array, ""]) -> None:
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
    if len(leaves) == 1:
        return jax.tree.map(lambda leaf: leaf.mantissa, gradient)
    common = common_log_scale(jnp.stack([leaf.log_scale for leaf in leaves]))
    return jax.tree.map(lambda leaf: leaf.mantissa * relative(leaf.log_scale, common), gradient)


def log_norm(gradient: PyTree[Scaled]) -> Float[Array, ""]:
    """Logarithm of the Euclidean norm over all leaves, minus infinity for zero."""
    leaves = jax.tree.leaves(gradient)
    logs = [leaf.log_scale + _log_frobenius(leaf.mantissa) for leaf in leaves]
    return jax.nn.logsumexp(2 * jnp.stack(logs)) / 2


def common_log_scale(log_scales: Float[Array, "..."]) -> Float[Array, ""]:
    """The largest of some scales: what numbers that are to be added are measured in."""
    return log_scales.max()


def relative(log_scale: Float[Array, "..."], common: Float[Array, ""]) -> Float[Array, "..."]:
    """Factor from one scale to another, zero where the number is exactly zero."""
    finite = jnp.where(jnp.isneginf(common), 0, common)
    return jnp.exp(log_scale - finite)


def _log_frobenius(mantissa: Any) -> Float[Array, ""]:
    largest = jnp.abs(mantissa).max()
    unit = jnp.where(largest > 0, largest, 1)
    return jnp.log(unit) + jnp.log(((mantissa / unit) ** 2).sum()) / 2
