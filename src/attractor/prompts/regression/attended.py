"""Attended means and covariances in random prompts: three ways to draw them, all of one law.

Tokens are standard normal here (see ``Whitening``). A head has a score functional ``g`` and a value
functional ``v``: its prediction is ``v^T m`` with the attended mean ``m``, whose derivative in
``g`` is ``C v`` with the attended covariance ``C``. Training needs ``m`` and ``C v``, no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt32

from attractor.prompts.regression.batches import (
    derived_key,
    normal_pair,
    standard_normals,
    token_normals,
    uniform,
)

_NUMBERS_AT_ONCE = 2**23
_REST = 0
_ENTRIES, _DIAGONAL = 0, 1


class Attended(NamedTuple):
    """Attended means and their derivatives.

    Attributes:
        mean: ``m``: of softmax attention ``sum_l p_l n_l``.
        slope: ``C v``, the derivative of ``v^T m`` in the score functional: of softmax attention
            ``sum_l p_l (v^T n_l - v^T m) n_l``.
    """

    mean: Float[Array, "prompt head entries"]
    slope: Float[Array, "prompt head entries"]


Draw = Callable[
    [
        UInt32[Array, "2"],
        Float[Array, "prompt head entries"],
        Float[Array, "prompt head entries"],
        float,
        str,
    ],
    Attended,
]


def softmax_of_tokens(
    key: UInt32[Array, "2"],
    scores: Float[Array, "prompt head entries"],
    values: Float[Array, "prompt head entries"],
    length: float,
    dtype: str = "float32",
) -> Attended:
    """Softmax attention with every token drawn: weights ``p_l`` proportional to ``e^{g^T n_l}``.

    Args:
        key: Two words.
        scores: Score functionals ``g``.
        values: Value functionals ``v``.
        length: Number of tokens of each prompt.
        dtype: Precision within a prompt.
    """
    _, heads, entries = scores.shape
    pairs = (entries + 1) // 2

    def one(normals: Array, scores: Array, values: Array) -> Attended:
        projected = _padded(jnp.concatenate([scores, values]), 2 * pairs) @ normals
        score, value = projected[:heads], projected[heads:]
        p = jnp.exp(score - score.max(-1, keepdims=True))
        p = p / p.sum(-1, keepdims=True)
        centered = p * (value - (p * value).sum(-1, keepdims=True))
        sums = (jnp.concatenate([p, centered]) @ normals.T)[:, :entries]
        return Attended(sums[:heads], sums[heads:])

    return _for_prompts(one, key, scores, values, pairs, int(length), dtype)


def softmax_of_projections(
    key: UInt32[Array, "2"],
    scores: Float[Array, "prompt head entries"],
    values: Float[Array, "prompt head entries"],
    length: float,
    dtype: str = "float32",
) -> Attended:
    """Softmax attention of one head, with the score and value of each token drawn alone.

    Weights depend on a token through its part along ``g``, values through that along ``v``. The
    rest of the tokens is independent of both, and enters as ``sum_l p_l r_l`` and
    ``sum_l p_l (u_l - u) r_l``, which are jointly Gaussian given weights and values.

    Args:
        key: Two words.
        scores: Score functionals ``g`` of one head.
        values: Value functionals ``v``.
        length: Number of tokens of each prompt.
        dtype: Precision within a prompt.
    """
    count, _, entries = scores.shape
    g, v = scores[:, 0].astype(jnp.float64), values[:, 0].astype(jnp.float64)
    along, size = _unit(g, 0.0)
    across, left = _unit(_without(along, _without(along, v)), 1e-12 * _norm(v))
    part = (along * v).sum(-1, keepdims=True)
    # The functionals in the plane of the two directions.
    plane = jnp.stack([size, jnp.zeros_like(size), part, left], 1)[..., 0].reshape(count, 2, 2)
    normals = standard_normals(derived_key(key, _REST), (count, 2 * entries), 0)
    rest = _without(across[:, None], _without(along[:, None], normals.reshape(count, 2, entries)))

    def one(drawn: Array, plane: Array, rest: Array) -> Attended:
        score = plane[0, 0] * drawn[0]
        value = plane[1, 0] * drawn[0] + plane[1, 1] * drawn[1]
        p = jnp.exp(score - score.max())
        p = p / p.sum()
        weights = jnp.stack([p, p * (value - (p * value).sum())])
        sums = weights @ jnp.concatenate([drawn, weights]).T
        first = jnp.sqrt(sums[0, 2])
        shared = sums[0, 3] / first
        own = jnp.sqrt(jnp.maximum(sums[1, 3] - shared**2, 0))
        return Attended(
            jnp.concatenate([sums[0, :2], first * rest[0]]),
            jnp.concatenate([sums[1, :2], shared * rest[0] + own * rest[1]]),
        )

    found = _for_prompts(one, key, plane, rest, 1, int(length), dtype)

    def assembled(drawn: Array) -> Array:
        within = drawn[:, :1] * along + drawn[:, 1:2] * across
        return (within + drawn[:, 2:])[:, None]

    return Attended(assembled(found.mean), assembled(found.slope))


def linear_of_moments(
    key: UInt32[Array, "2"],
    scores: Float[Array, "prompt head entries"],
    values: Float[Array, "prompt head entries"],
    length: float,
    dtype: str = "float32",
) -> Attended:
    """Linear attention, ``m = G g`` and ``C v = G v`` with ``G = (1/L) sum_l n_l n_l^T``.

    ``G`` is drawn, and no token: the cost does not depend on the length.

    Args:
        key: Two words.
        scores: Score functionals ``g``.
        values: Value functionals ``v``.
        length: Number of tokens of each prompt.
        dtype: Precision within a prompt.
    """
    count, _, entries = scores.shape
    factors = triangular_factors(key, count, int(length), entries)

    def product(functional: Array) -> Array:
        half = jnp.einsum("pre,phe->phr", factors, functional)
        return jnp.einsum("pre,phr->phe", factors, half) / length

    return Attended(product(scores), product(values))


def linear_of_tokens(
    key: UInt32[Array, "2"],
    scores: Float[Array, "prompt head entries"],
    values: Float[Array, "prompt head entries"],
    length: float,
    dtype: str = "float32",
) -> Attended:
    """Linear attention with every token drawn; see ``linear_of_moments``."""
    _, heads, entries = scores.shape
    pairs = (entries + 1) // 2

    def one(normals: Array, scores: Array, values: Array) -> Attended:
        both = _padded(jnp.concatenate([scores, values]), 2 * pairs)
        products = ((both @ normals) @ normals.T)[:, :entries] / length
        return Attended(products[:heads], products[heads:])

    return _for_prompts(one, key, scores, values, pairs, int(length), dtype)


def of_covariance(
    key: UInt32[Array, "2"],
    scores: Float[Array, "prompt head entries"],
    values: Float[Array, "prompt head entries"],
    length: float,
    dtype: str = "float32",
) -> Attended:
    """Attention on a prompt of infinite length, softmax or linear: ``m = g`` and ``C v = v``."""
    return Attended(scores, values)


DRAWS: dict[tuple[str, str], Draw] = {
    ("softmax", "tokens"): softmax_of_tokens,
    ("softmax", "projections"): softmax_of_projections,
    ("linear", "tokens"): linear_of_tokens,
    ("linear", "moments"): linear_of_moments,
}
"""Ways to draw what is attended to, by the kind of attention and the name of the way."""


def _for_prompts(
    one: Callable[[Array, Array, Array], Attended],
    key: UInt32[Array, "2"],
    first: Array,
    second: Array,
    pairs: int,
    tokens: int,
    dtype: str,
) -> Attended:
    """Applies a function to normal numbers and two arrays of every prompt, in some precision.

    As many prompts are worked on at once as fit into a fixed amount of memory.
    """
    count = len(first)
    most = max(1, _NUMBERS_AT_ONCE // (2 * pairs * tokens))
    together = next(size for size in range(min(most, count), 0, -1) if count % size == 0)

    def group(arrays: tuple[Array, Array, Array]) -> Attended:
        prompts, *others = arrays
        normals = token_normals(key, prompts, pairs, tokens).astype(dtype)
        return jax.vmap(one)(normals, *others)

    arrays = (
        lax.iota(jnp.uint32, count),
        first.astype(dtype),
        second.astype(dtype),
    )
    split = [array.reshape(-1, together, *array.shape[1:]) for array in arrays]
    found = lax.map(group, tuple(split))
    return jax.tree.map(
        lambda leaf: leaf.reshape(count, *leaf.shape[2:]).astype(jnp.float64), found
    )


def _padded(functionals: Array, entries: int) -> Array:
    return jnp.pad(functionals, ((0, 0), (0, entries - functionals.shape[-1])))


def _norm(vectors: Array) -> Array:
    return jnp.sqrt((vectors**2).sum(-1, keepdims=True))


def _unit(vectors: Array, least: Array | float) -> tuple[Array, Array]:
    """Unit vectors and lengths; both are zero where the length is no more than the least."""
    size = _norm(vectors)
    kept = size > least
    return jnp.where(kept, vectors / jnp.where(kept, size, 1), 0), jnp.where(kept, size, 0)


def _without(directions: Array, vectors: Array) -> Array:
    """Vectors without their part along unit vectors."""
    return vectors - (directions * vectors).sum(-1, keepdims=True) * directions


def triangular_factors(
    key: UInt32[Array, "2"], count: int, length: int, dimension: int
) -> Float[Array, "count rows dimension"]:
    """Upper triangular ``R`` with ``R^T R`` distributed as ``sum_l n_l n_l^T``, for each prompt.

    Bartlett's decomposition: of ``length`` standard normal tokens the triangular factor has
    independent entries, standard normal above the diagonal, and the root of a chi-squared number
    with ``length - i`` degrees of freedom in place ``i`` on it. Fewer tokens than entries leave as
    many rows as tokens. The cost does not depend on the length.

    Args:
        key: Two words.
        count: Number of prompts.
        length: Number of tokens of each.
        dimension: Entries of a token.

    Source:
        Bartlett, "On the theory of statistical regression" (Proc. Royal Soc. Edinburgh, 1934).
    """
    rows = min(length, dimension)
    normals = standard_normals(derived_key(key, _ENTRIES), (count, rows * dimension), 0)
    normals = normals.reshape(count, rows, dimension).astype(jnp.float64)
    above = jnp.triu(normals, 1)
    degrees = length - jnp.arange(rows)
    squares = chi_squared(derived_key(key, _DIAGONAL), count, degrees)
    if length == rows:  # the last has one degree of freedom: the square of a normal number
        squares = squares.at[:, -1].set(normals[:, -1, rows - 1] ** 2)
    place = jnp.arange(rows)
    return above.at[:, place, place].set(jnp.sqrt(squares))


def chi_squared(
    key: UInt32[Array, "2"], count: int, degrees: Float[Array, "columns"]
) -> Float[Array, "count columns"]:
    """Chi-squared numbers by rejection, exactly.

    A cube of a normal number is accepted in 95 cases of 100 or more; every round tries again
    where none has been.

    Args:
        key: Two words.
        count: Number of rows.
        degrees: Degrees of freedom of each column, 2 or more.

    Source:
        Marsaglia, Tsang, "A simple method for generating gamma variables" (ACM TOMS, 2000).
    """
    d = degrees / 2 - 1 / 3
    c = 1 / jnp.sqrt(9 * d)
    shape = (count, len(degrees))
    place = lax.iota(jnp.uint32, count * len(degrees)).reshape(shape)

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        turn, found, accepted = state
        x = normal_pair(key, place, 2 * turn)[0].astype(jnp.float64)
        u = uniform(key, place, 2 * turn + 1)
        v = (1 + c * x) ** 3
        positive = jnp.where(v > 0, v, 1.0)
        passes = jnp.log(u) < x**2 / 2 + d * (1 - positive + jnp.log(positive))
        passes = passes & (v > 0)
        return turn + 1, jnp.where(accepted, found, 2 * d * v), accepted | passes

    start = (jnp.uint32(0), jnp.zeros(shape), jnp.zeros(shape, bool))
    return jax.lax.while_loop(lambda state: ~state[2].all(), attempt, start)[1]
