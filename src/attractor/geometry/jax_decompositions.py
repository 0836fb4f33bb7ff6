"""Singular values in JAX: decompositions, and their powers for many matrices at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from attractor.geometry.exponent import positive_power

_REGISTER = 64
"""Bytes of the widest registers that there are."""
_TOO_LARGE = 144
"""Entries of Q from which 25 matrices are orthogonalized in half of the time of 32: three such
arrays of 32 no longer fit into the nearest memory."""


@functools.partial(jax.jit, static_argnums=1, inline=True)
def powers_together(W: Float[Array, "batch d e"], exponent: int) -> Float[Array, "batch d e"]:
    """``U s^exponent V^T`` with ``W = U s V^T``, for finite W with largest entry one or zero.

    Of a pivoted orthogonalization, what is below ``d + e`` roundings of the longest row, which
    rounding alone could have made, counts as zero.

    Args:
        W: Matrices.
        exponent: 0, the sum of ``u_i v_i^T`` over the singular values that are not zero; or 2,
            to a few roundings of ``s_1^2``.
    """
    if W.shape[1] > W.shape[2]:
        return powers_together(W.mT, exponent).mT
    columns = _side_by_side(W, (2, 1, 0))
    if exponent == 2:
        return jnp.einsum("mnb,nkb->bkm", columns, _square_root(_gram(columns)))[: len(W)]
    m, n, _ = columns.shape
    if m * (n + n % 2) >= _TOO_LARGE:
        columns = columns[..., : len(W)]
    rank, R, Q = _orthogonalized(columns)
    few = _few(R)
    rest = ((0, len(R) - few), (0, 0), (0, 0))
    rows = lax.cond(
        rank <= few, lambda: jnp.pad(_polar_factor(R[:few]), rest), lambda: _polar_factor(R)
    )
    return jnp.einsum("knb,kmb->bnm", rows, Q)[: len(W)]


@functools.partial(jax.jit, inline=True)
def cubes_together(W: Float[Array, "batch d e"]) -> Float[Array, "batch"]:
    """``sum s_i^3`` over the singular values, for finite W with largest entry one or zero."""
    axes = (1, 2, 0) if W.shape[1] > W.shape[2] else (2, 1, 0)
    M = _gram(_side_by_side(W, axes))
    return (M * _square_root(M)).sum((0, 1))[: len(W)]


def _side_by_side(
    W: Float[Array, "batch d e"], axes: tuple[int, int, int]
) -> Float[Array, "m n lane"]:
    """Matrices with their entries side by side, and zeros where they would not fill a register.

    What is left over of a register is worked on one number at a time: 25 matrices take longer
    than 32.
    """
    lanes = _REGISTER // W.dtype.itemsize
    missing = -len(W) % lanes if len(W) > lanes else 0
    return jnp.pad(jnp.transpose(W, axes), ((0, 0), (0, 0), (0, missing)))


def _few(rows: Float[Array, "k n batch"]) -> int:
    """About half of an even number of rows: the rank of a gradient is often that low."""
    return 2 * -(-len(rows) // 4)


def _gram(vectors: Float[Array, "m n batch"]) -> Float[Array, "n n batch"]:
    """Products of n vectors of m entries."""
    return reduce(jnp.add, [entries[:, None] * entries for entries in vectors])


def _square_root(M: Float[Array, "n n batch"]) -> Float[Array, "n n batch"]:
    """``M^(1/2) = L L^T^(1/2)`` is L times the polar factor of ``L^T``."""
    rank, rows = _cholesky(M)
    few = _few(rows)

    def root(rows: Float[Array, "k n batch"]) -> Float[Array, "n n batch"]:
        polar = _polar_factor(rows, math.sqrt(jnp.finfo(M.dtype).eps))
        return reduce(jnp.add, [row[:, None] * u for row, u in zip(rows, polar, strict=True)])

    return lax.cond(rank <= few, lambda: root(rows[:few]), lambda: root(rows))


def _cholesky(
    M: Float[Array, "n n batch"],
) -> tuple[Int[Array, ""], Float[Array, "k n batch"]]:
    """Rows with ``M = rows^T rows``, the largest of what is left of the diagonal first.

    What is left below n roundings of the largest entry of the diagonal counts as zero.

    Returns:
        The largest rank; the rows, zero beyond the rank of a matrix; k is n, or one more to be
        even.
    """
    n, _, batch = M.shape
    diagonal = M.reshape(n * n, batch)[:: n + 1]
    least = n * jnp.finfo(M.dtype).eps * diagonal.max(0)

    def going(state: tuple) -> Array:
        step, diagonal, _ = state
        return (step < n) & (diagonal.max(0) > least).any()

    def advance(state: tuple) -> tuple:
        step, diagonal, rows = state
        largest = diagonal.max(0)
        chosen = (diagonal == largest).astype(M.dtype)
        row = (M * chosen[:, None]).sum(0)
        known = reduce(jnp.add, [rows[:, j] * chosen[j] for j in range(n)])
        row = row - (rows * known[:, None]).sum(0)
        pivot = (row * chosen).sum(0)
        live = (largest > least) & (pivot > 0)
        row = row * jnp.where(live, 1 / jnp.sqrt(jnp.where(live, pivot, 1)), 0)
        left = jnp.where(chosen > 0, 0, jnp.maximum(diagonal - row**2, 0))
        return step + 1, _distinct(left), lax.dynamic_update_index_in_dim(rows, row, step, 0)

    rows = jnp.zeros((n + n % 2, n, batch), M.dtype)
    rank, _, rows = lax.while_loop(going, advance, (jnp.int32(0), _distinct(diagonal), rows))
    return rank, rows


def _orthogonalized(
    vectors: Float[Array, "m n batch"],
) -> tuple[Int[Array, ""], Float[Array, "k n batch"], Float[Array, "k m batch"]]:
    """Gram-Schmidt on n vectors of m entries, the longest of what is left first.

    Returns:
        The largest rank; R and Q with ``vectors = Q^T R``, the rows of Q orthonormal to working
        precision, both zero beyond the rank of a matrix; k is n, or one more to be even.
    """
    m, n, batch = vectors.shape
    k = n + n % 2
    squares = _distinct((vectors**2).sum(0))
    least = ((m + n) * jnp.finfo(vectors.dtype).eps) ** 2 * squares.max(0)

    def going(state: tuple) -> Array:
        step, _, squares, _, _ = state
        return (step < n) & (squares.max(0) > least).any()

    def advance(state: tuple) -> tuple:
        step, rest, squares, R, Q = state
        longest = squares.max(0)
        chosen = squares == longest
        pivot = jnp.where(chosen, rest, 0).sum(1)
        pivot = pivot - ((Q * pivot).sum(1)[:, None] * Q).sum(0)
        square = (pivot**2).sum(0)
        live = (longest > least) & (square > 0)
        unit = pivot * jnp.where(live, 1 / jnp.sqrt(jnp.where(live, square, 1)), 0)
        along = (rest * unit[:, None]).sum(0)
        rest = jnp.where(chosen, 0, rest - unit[:, None] * along)
        R = lax.dynamic_update_index_in_dim(R, along, step, 0)
        Q = lax.dynamic_update_index_in_dim(Q, unit, step, 0)
        return step + 1, rest, _distinct((rest**2).sum(0)), R, Q

    R, Q = (jnp.zeros((k, length, batch), vectors.dtype) for length in (n, m))
    rank, _, _, R, Q = lax.while_loop(going, advance, (jnp.int32(0), vectors, squares, R, Q))
    return rank, R, Q


def _distinct(sizes: Float[Array, "n batch"]) -> Float[Array, "n batch"]:
    """Numbers that are not negative, with their last bits changed so that no two are equal."""
    n = len(sizes)
    kind = {32: jnp.int32, 64: jnp.int64}[jnp.finfo(sizes.dtype).bits]
    last = (1 << (n - 1).bit_length()) - 1
    bits = lax.bitcast_convert_type(sizes, kind) & ~last
    return lax.bitcast_convert_type(bits | jnp.arange(n, dtype=kind)[::-1, None], sizes.dtype)


def _polar_factor(
    rows: Float[Array, "k n batch"], least: float | None = None
) -> Float[Array, "k n batch"]:
    """The polar factor of graded rows; zero rows stay zero.

    Each step is ``X <- (b / c) X + (a - b / c) (I + c X X^T)^{-1} X``; the last is Newton's and
    Schulz's, ``X <- (3 X - X X^T X) / 2``, which squares what is missing from one.

    Args:
        rows: The rows.
        least: What singular values down to, relative to their norm, come to one to working
            precision; by default a rounding.
    """
    squares = (rows**2).sum((0, 1))
    unit = rows * (1 / jnp.sqrt(jnp.where(squares > 0, squares, 1)))
    least = least or float(jnp.finfo(rows.dtype).eps)
    steps = jnp.asarray(_halley_steps(least), rows.dtype)
    identity = jnp.eye(len(rows), dtype=rows.dtype)[..., None]

    def advance(number: Array, X: Array) -> Array:
        gram = reduce(jnp.add, [X[:, None, j] * X[None, :, j] for j in range(X.shape[1])])

        def halley() -> Array:
            shift, weight, constant = steps[number]
            return (constant + 2 * weight) * identity - weight * _swept(gram + shift * identity)

        last = number == len(steps)
        return _product(lax.cond(last, lambda: 1.5 * identity - 0.5 * gram, halley), X)

    return lax.fori_loop(0, len(steps) + 1, advance, unit)


@functools.cache
def _halley_steps(least: float) -> list[tuple[float, float, float]]:
    """``1 / c``, ``(a - b / c) / c``, ``b / c``, until those from ``least`` to 1 are nearly one."""
    steps = []
    while 1 - least > 1e-8:
        square = least**2
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        steps.append((1 / c, (a - b / c) / c, b / c))
        least = min(least * (a + b * square) / (1 + c * square), 1.0)
    return steps


def _swept(M: Float[Array, "k k batch"]) -> Float[Array, "k k batch"]:
    """``2 I - M^{-1}`` of positive definite matrices, by sweeps of two pivots each; k is even.

    The sweep ``M - (c - I)^T P^{-1} (c - I)`` with the two rows c of the pivots, in which P lies,
    leaves 2 on the diagonal beside the usual result: no entry is treated apart.
    """
    one = jnp.eye(len(M), dtype=M.dtype)[..., None]
    for first in range(0, len(M), 2):
        rows = M[first : first + 2]
        p, o, q = M[first, first], M[first, first + 1], M[first + 1, first + 1]
        inverse = 1 / (p * q - o * o)
        u, v = rows - one[first : first + 2]
        along_u, along_v = (
            (q * inverse) * u - (o * inverse) * v,
            (p * inverse) * v - (o * inverse) * u,
        )
        M = M - (u[:, None] * along_u + v[:, None] * along_v)
    return M


def _product(
    A: Float[Array, "i k batch"], B: Float[Array, "k n batch"]
) -> Float[Array, "i n batch"]:
    """Products of matrices that lie side by side, as XLA reduces no middle axis fast."""
    return reduce(jnp.add, [A[:, j, None] * B[j] for j in range(len(B))])


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

    return _small_ones_together(of_values, lambda W: powers_together(W, exponent))


_powers = {exponent: _power(exponent) for exponent in (0, 2)}
_sum_of_cubes = _small_ones_together(lambda W: (_singular_values(W) ** 3).sum(), cubes_together)


def _for_each_matrix(function: Callable[[Any], Any], W: jax.Array) -> Any:
    for _ in range(W.ndim - 2):
        function = jax.vmap(function)
    return function(W)
