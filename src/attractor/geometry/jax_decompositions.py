"""Matrix decompositions of JAX arrays, of one matrix at a time.

On the CPU, JAX cuts a batch of decompositions into tasks for its pool of threads and waits for
them from inside that very pool. Two programs that do so at once, or two independent decompositions
in one program, wait for each other for ever. One matrix at a time is decomposed where it stands,
and that is what JAX arrays get here, however they are batched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attractor.geometry import jax_singular_powers
from attractor.geometry.exponent import positive_power

_MOST_TOGETHER = 12
"""Rows and columns of matrices of which a batch is worked on at once: LAPACK is slower up to 13."""


def singular_values(W: Float[Array, "*batch d e"]) -> Float[Array, "*batch k"]:
    """Singular values in descending order, k = min(d, e) of them."""
    return _for_each_matrix(_singular_values, W)


def singular_value_decomposition(
    W: Float[Array, "*batch d e"],
) -> tuple[Float[Array, "*batch d k"], Float[Array, "*batch k"], Float[Array, "*batch k e"]]:
    """The thin decomposition ``W = U diag(s) V``, k = min(d, e)."""
    return _for_each_matrix(_decomposition, W)


def singular_power(W: Float[Array, "*batch d e"], exponent: int) -> Float[Array, "*batch d e"]:
    """``U s^exponent V^T`` with ``W = U s V^T``, whose largest entry is one or zero.

    Values that rounding alone could have made count as zero.

    Args:
        W: Matrices.
        exponent: 0 or 2.
    """
    return _for_each_matrix(_powers[exponent], W)


def sum_of_powers(W: Float[Array, "*batch d e"], exponent: float) -> Float[Array, "*batch"]:
    """``sum s_i^exponent`` over the singular values of W, whose entries are at most one."""
    if exponent == 3:
        return _for_each_matrix(_sum_of_cubes, W)
    return positive_power(singular_values(W), exponent).sum(-1)


def one_at_a_time(
    function: Callable[..., Any], together: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function of single matrices that stays one under ``vmap`` where that is the CPU's.

    Args:
        function: Takes arrays and returns a pytree of arrays; made of decompositions.
        together: What the CPU does for all matrices of a batch instead.
    """
    single = jax.custom_batching.custom_vmap(function)
    on_cpu = together or (lambda *arrays: jax.lax.map(lambda each: single(*each), arrays))

    @single.def_vmap
    def batched(size: int, is_batched: list[bool], *arrays: Any) -> tuple[Any, Any]:
        whole = [
            array if flag else jnp.broadcast_to(array, (size, *array.shape))
            for array, flag in zip(arrays, is_batched, strict=True)
        ]
        found = jax.lax.platform_dependent(
            *whole,
            cpu=on_cpu,
            default=jax.vmap(function),
        )
        return found, jax.tree.map(lambda _: True, found)

    return single


_singular_values = one_at_a_time(lambda W: jnp.linalg.svd(W, compute_uv=False))
_decomposition = one_at_a_time(lambda W: tuple(jnp.linalg.svd(W, full_matrices=False)))


def _small_ones_together(
    single: Callable[[Any], Any], together: Callable[[Any], Any]
) -> Callable[..., Any]:
    """A function of single matrices; batches of small ones have one of their own."""

    @jax.custom_batching.custom_vmap
    def batch(W: Float[Array, "batch d e"]) -> Any:
        if max(W.shape[1:]) > _MOST_TOGETHER or not W.size:
            return jax.lax.map(single, W)
        return together(W)

    @batch.def_vmap
    def flattened(size: int, is_batched: list[bool], W: Any) -> tuple[Any, bool]:
        found = batch(W.reshape(-1, *W.shape[2:]))
        return found.reshape(*W.shape[:2], *found.shape[1:]), True

    return one_at_a_time(single, batch)


def _power(exponent: int) -> Callable[[Any], Any]:
    def of_values(W: Float[Array, "d e"]) -> Float[Array, "d e"]:
        U, values, V = _decomposition(W)
        kept = values > sum(W.shape) * jnp.finfo(W.dtype).eps * values[:1]
        return (U * jnp.where(kept, values**exponent, 0)) @ V

    return _small_ones_together(
        of_values, lambda W: jax_singular_powers.singular_power(W, exponent)
    )


_powers = {exponent: _power(exponent) for exponent in (0, 2)}
_sum_of_cubes = _small_ones_together(
    lambda W: (_singular_values(W) ** 3).sum(), jax_singular_powers.sum_of_cubes
)


def _for_each_matrix(function: Callable[[Any], Any], W: jax.Array) -> Any:
    for _ in range(W.ndim - 2):
        function = jax.vmap(function)
    return function(W)
