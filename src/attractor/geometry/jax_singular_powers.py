"""``U V^T``, ``U s^2 V^T`` and ``sum s^3`` of many small JAX matrices at once, not decomposed.

A pivoted orthogonalization leaves rows that are as far apart in size as the singular values, but no
more than that: scaled to one length they are well conditioned. Rational functions of their Gram
matrix then give the polar factor, to about a rounding for each of its directions, also where
singular values differ by 1e14 because rows or columns of the matrix do.

Squares and cubes are made of ``M^(1/2)`` with ``M = W W^T``, whose pivoted Cholesky factor is as
well conditioned. A change E of M, in its eigenvectors, changes ``M^(1/2) W`` by
``E_ij s_j / (s_i + s_j)``: the roundings of M, and what of it counts as zero, weigh no more there
than those of ``s_1^2``.

Numbers of all matrices lie side by side, so that one operation serves them all, and each matrix
goes through the same operations whatever lies beside it.

Sources: Nakatsukasa, Bai and Gygi, *Optimizing Halley's iteration for computing the matrix polar
decomposition* (2010), whose steps these are; Drmac and Veselic, *New fast and accurate Jacobi SVD
algorithm* (2008), for the pivoting; Demmel and Veselic, *Jacobi's method is more accurate than QR*
(1992), for systems whose scaling does not matter.
"""

from __future__ import annotations

import functools
import math
from functools import reduce

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

_REGISTER = 64
"""Bytes of the widest registers that there are."""
_TOO_LARGE = 144
"""Entries of Q from which 25 matrices are orthogonalized in half of the time of 32: three such
arrays of 32 no longer fit into the nearest memory."""


@functools.partial(jax.jit, static_argnums=1, inline=True)
def singular_power(W: Float[Array, "batch d e"], exponent: int) -> Float[Array, "batch d e"]:
    """``U s^exponent V^T`` with ``W = U s V^T``, for finite W with largest entry one or zero.

    Of a pivoted orthogonalization, what is below ``d + e`` roundings of the longest row, which
    rounding alone could have made, counts as zero.

    Args:
        W: Matrices.
        exponent: 0, the sum of ``u_i v_i^T`` over the singular values that are not zero; or 2,
            to a few roundings of ``s_1^2``.
    """
    if W.shape[1] > W.shape[2]:
        return singular_power(W.mT, exponent).mT
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
def sum_of_cubes(W: Float[Array, "batch d e"]) -> Float[Array, "batch"]:
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
