"""Second moments of Gaussian tokens, drawn without drawing the tokens."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt32

from attractor.prompt.regression.drawing import derived_key, normal_pair, standard_normals, uniform

_ENTRIES, _DIAGONAL = 0, 1


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
