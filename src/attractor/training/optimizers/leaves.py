"""Operations of optimizers on the leaves of a tree: each as a matrix, all as one vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.training.optimizers.checks import Number


def as_matrix(leaf: Float[Array, "..."]) -> Float[Array, "d e"]:
    """A leaf as one matrix: a vector is a column, and axes beyond the second count as columns."""
    return leaf.reshape(leaf.shape[0] if leaf.ndim else 1, math.prod(leaf.shape[1:]))


def on_matrices(function: Callable[[Array], Array], *trees: PyTree) -> PyTree:
    """Applies a function of matrices to every leaf."""

    def apply(*leaves: Array) -> Array:
        return function(*(as_matrix(leaf) for leaf in leaves)).reshape(leaves[0].shape)

    return jax.tree.map(apply, *trees)


def unit(
    tree: PyTree, power_sum: Callable[[Array], Array], exponent: float
) -> PyTree[Float[Array, "..."]]:
    """A tree divided by ``(sum of power_sum over its leaves)^(1 / exponent)``; zero stays zero.

    Leaves are first divided by the largest entry, so that no power overflows or underflows.
    """
    shrunk, _, norm = _reduced(tree, power_sum, exponent)
    norm = jnp.where(norm != 0, norm, 1)
    return jax.tree.map(lambda leaf: leaf / norm, shrunk)


def log_size(
    gradient: PyTree[Scaled], power_sum: Callable[[Array], Array], exponent: float
) -> Float[Array, ""]:
    """Logarithm of what ``unit`` divides a gradient by, minus infinity for zero.

    It is made of the same expressions, so that a compiled step computes the norm once.
    """
    plain, log_scale = with_one_scale(gradient)
    _, largest, norm = _reduced(plain, power_sum, exponent)
    return log_scale + jnp.log(largest) + jnp.log(norm)


def square_sum(matrix: Float[Array, "*batch d e"]) -> Float[Array, "*batch"]:
    """The square of the Frobenius norm."""
    return (matrix**2).sum((-2, -1))


def largest_entry(tree: PyTree) -> PyTree[Float[Array, "..."]]:
    """The sign of the first of the largest entries of all leaves; zero everywhere else."""
    leaves, structure = jax.tree.flatten(tree)
    # The sizes of leaves are compared first: joining all leaves would copy each of them.
    sizes = jnp.stack([jnp.abs(leaf).max() for leaf in leaves])
    chosen = jnp.where(jnp.isnan(sizes).any(), jnp.nan, 1.0)
    holds = jnp.arange(len(leaves)) == jnp.argmax(sizes)

    def pick(leaf: Array, here: Array) -> Array:
        flat = jnp.abs(leaf).reshape(-1)
        first = (jnp.arange(flat.size) == jnp.argmax(flat)).reshape(leaf.shape)
        return jnp.sign(leaf) * jnp.where(first & here, chosen, 0).astype(leaf.dtype)

    return structure.unflatten([pick(leaf, holds[i]) for i, leaf in enumerate(leaves)])


def with_one_scale(gradient: PyTree[Scaled]) -> tuple[PyTree, Float[Array, ""]]:
    """Plain arrays and the logarithm of the one factor that they all lack."""
    leaves = jax.tree.leaves(gradient)
    if len(leaves) == 1 and not jnp.ndim(leaves[0].log_scale):
        return jax.tree.map(lambda leaf: leaf.mantissa, gradient), leaves[0].log_scale
    scales = [jnp.where(leaf.mantissa != 0, leaf.log_scale, -jnp.inf).max() for leaf in leaves]
    common = common_log_scale(jnp.stack(scales))
    plain = jax.tree.map(lambda leaf: leaf.mantissa * relative(leaf.log_scale, common), gradient)
    return plain, common


def as_scaled(gradient: PyTree[Scaled | Array]) -> PyTree[Scaled]:
    """Plain arrays, as in anybody's own loop, as numbers of scale one."""

    def apply(leaf: Any) -> Scaled:
        return leaf if isinstance(leaf, Scaled) else Scaled(leaf, jnp.zeros((), leaf.dtype))

    return jax.tree.map(apply, gradient)


def memoryless(learning_rate: Number, rise: Callable[[PyTree], PyTree]) -> tuple[Any, Any]:
    """The pair of functions of a step against ``rise(gradient)`` that remembers nothing."""

    def update(
        updates: PyTree, state: optax.EmptyState, params: PyTree | None = None, **further: Any
    ) -> tuple[PyTree, optax.EmptyState]:
        return jax.tree.map(lambda leaf: -learning_rate * leaf, rise(updates)), state

    return lambda params: optax.EmptyState(), update


def _reduced(
    tree: PyTree, power_sum: Callable[[Array], Array], exponent: float
) -> tuple[PyTree, Float[Array, ""], Float[Array, ""]]:
    """A tree divided by its largest entry, that entry, and the norm of what is left."""
    sizes = [jnp.abs(leaf).max(initial=0) for leaf in jax.tree.leaves(tree)]
    largest = jnp.stack(sizes).max(initial=0)
    scale = jnp.where(largest != 0, largest, 1)
    shrunk = jax.tree.map(lambda leaf: leaf / scale, tree)
    total = sum(power_sum(as_matrix(leaf)) for leaf in jax.tree.leaves(shrunk))
    norm = jnp.sqrt(total) if exponent == 2 else total ** (1 / exponent)
    return shrunk, largest, norm
