"""Prompts of in-context regression, drawn by counter, with tokens that are standard normal.

Each number is a function of a key and its own place. The bits are those of Threefry-2x32 with 20
rounds, the function behind ``jax.random``, written out so that the compiler keeps bits, logarithm
and rotation of a pair in registers: a number takes about a third of the time of
``jax.random.normal``, and no array of bits passes through memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Integer, UInt32, UInt64

from attractor.prompts.regression.risks.infinite_prompts import TaskArrays
from attractor.prompts.regression.task import RegressionTask

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_TURNS = 8
_NOT_A_DRAW = 0xFFFFFFFF  # second word of the counters that keys come from, and no number does

# cos(pi s / 2) and sin(pi s / 2) / s for |s| <= 1, as polynomials in s^2, to single precision.
_COSINE = (1.0, -1.23370051, 0.253669322, -0.0208626874, 0.000917723868, -2.38245357e-05)
_SINE = (1.57079637, -0.645963788, 0.0796899199, -0.00467415061, 0.000151675122)


@jax.jit  # traced once for all that draw arrays of one shape
def threefry(
    key: UInt32[Array, "2"], first: Integer[Array, "..."], second: Integer[Array, "..."]
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Threefry-2x32 with 20 rounds: two random words for a counter of two words.

    Args:
        key: Two words.
        first: First word of the counters.
        second: Second word; broadcast against the first.

    Source:
        Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    first, second = jnp.broadcast_arrays(jnp.asarray(first), jnp.asarray(second))
    x, y = first.astype(jnp.uint32) + keys[0], second.astype(jnp.uint32) + keys[1]
    for turn in range(1, 6):
        for bits in _ROTATIONS[(turn - 1) % 2]:
            x = x + y
            y = ((y << jnp.uint32(bits)) | (y >> jnp.uint32(32 - bits))) ^ x
        x = x + keys[turn % 3]
        y = y + keys[(turn + 1) % 3] + jnp.uint32(turn)
    return x, y


def derived_key(key: UInt32[Array, "2"], number: Integer[Array, ""] | int) -> UInt32[Array, "2"]:
    """The key that belongs to a key and a number, such as that of a step."""
    return jnp.stack(threefry(key, jnp.asarray(number), jnp.uint32(_NOT_A_DRAW)))


def uniform(
    key: UInt32[Array, "2"], first: Integer[Array, "..."], second: Integer[Array, "..."] | int
) -> Float[Array, "..."]:
    """Uniform numbers in (0, 1) for counters, in double precision."""
    bits, _ = threefry(key, first, jnp.asarray(second))
    return (bits.astype(jnp.float64) + 0.5) * 2.0**-32


def normal_pair(
    key: UInt32[Array, "2"], first: Integer[Array, "..."], second: Integer[Array, "..."] | int
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Two independent standard normal numbers for every counter, in single precision.

    Box and Muller's polar form, ``sqrt(-2 log u) (cos a, sin a)``: ``u`` has 31 bits, so that
    numbers go up to 6.66, and the angle 32. Needs 64-bit integers to be enabled.

    Args:
        key: Two words.
        first: First word of the counters.
        second: Second word; broadcast against the first.
    """
    return _unpacked(_packed_pair(key, first, jnp.asarray(second)))


def token_normals(
    key: UInt32[Array, "2"], prompts: Integer[Array, "prompt"], pairs: int, tokens: int
) -> Float[Array, "prompt rows tokens"]:
    """Standard normal numbers for the tokens of prompts, in single precision.

    Args:
        key: Two words.
        prompts: Numbers of the prompts, which name their tokens.
        pairs: Half of the rows of a prompt.
        tokens: Tokens of a prompt, along the last axis.
    """
    place = lax.broadcasted_iota(jnp.uint32, (pairs, tokens), 0) * jnp.uint32(tokens)
    place = place + lax.broadcasted_iota(jnp.uint32, (pairs, tokens), 1)
    # What leaves a loop is in memory; what leaves any other operation the compiler computes anew
    # in each that reads it.
    turns = math.gcd(len(prompts), _TURNS)
    packed = lax.map(
        jax.vmap(lambda prompt: _packed_pair(key, place, prompt)), prompts.reshape(turns, -1)
    )
    return jnp.concatenate(_unpacked(packed.reshape(-1, pairs, tokens)), axis=1)


def standard_normals(
    key: UInt32[Array, "2"], shape: tuple[int, int], second: int
) -> Float[Array, "rows columns"]:
    """An array of standard normal numbers, in single precision.

    Args:
        key: Two words.
        shape: Rows and columns.
        second: Second word of all counters.
    """
    rows, columns = shape
    half = (columns + 1) // 2
    place = lax.iota(jnp.uint32, rows * half).reshape(rows, half)
    return jnp.concatenate(normal_pair(key, place, second), axis=1)[:, :columns]


def _packed_pair(
    key: UInt32[Array, "2"], first: Integer[Array, "..."], second: Integer[Array, "..."]
) -> UInt64[Array, "..."]:
    """Both numbers of a pair in one word, so that one loop computes both."""
    radial, angular = threefry(key, first, second)
    u = ((radial >> jnp.uint32(1)).astype(jnp.int32).astype(jnp.float32) + 0.5) * 2.0**-31
    radius = jnp.sqrt(-2 * jnp.log(u))
    # A quarter turn to either side, and the lowest bit for the half of the circle.
    radius = jnp.where((radial & jnp.uint32(1)) == 0, radius, -radius)
    s = lax.bitcast_convert_type(angular, jnp.int32).astype(jnp.float32) * 2.0**-31
    x, y = radius * _polynomial(_COSINE, s * s), radius * (s * _polynomial(_SINE, s * s))
    return _word(x) | (_word(y) << jnp.uint64(32))


def _unpacked(pairs: UInt64[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    def number(words: Array) -> Float[Array, "..."]:
        return lax.bitcast_convert_type(words.astype(jnp.uint32), jnp.float32)

    return number(pairs), number(pairs >> jnp.uint64(32))


def _word(x: Float[Array, "..."]) -> UInt64[Array, "..."]:
    return lax.bitcast_convert_type(x, jnp.uint32).astype(jnp.uint64)


def _polynomial(coefficients: Sequence[float], t: Float[Array, "..."]) -> Float[Array, "..."]:
    high, *rest = reversed([jnp.float32(c) for c in coefficients])
    return functools.reduce(lambda value, c: value * t + c, rest, jnp.full_like(t, high))


class PromptLaw(NamedTuple):
    """The law of prompts and queries as arrays that may be traced: one program serves all tasks.

    Attributes:
        arrays: What risks depend on.
        factor: ``R``, with the covariance ``R R^T`` of the inputs.
        noise: Standard deviation of the noise of labels in a prompt; None if there is none, as
            tokens then have one entry less, and need another program.
        query_noise: Standard deviation of the noise of the query's label.
    """

    arrays: TaskArrays
    factor: Float[Any, "d d"]
    noise: Float[Any, ""] | None
    query_noise: Float[Any, ""]

    @classmethod
    def of(cls, task: RegressionTask) -> PromptLaw:
        """That of a task."""
        law = cls(
            TaskArrays.of(task),
            np.linalg.cholesky(task.covariance),
            np.sqrt(task.label_noise) if task.label_noise else None,
            np.sqrt(task.query_noise),
        )
        return jax.tree.map(np.asarray, law)


class Prompts(NamedTuple):
    """Weights and queries of prompts.

    Attributes:
        weights: The weights ``w`` of each prompt.
        queries: The input ``x_q`` of its query.
        labels: The label of its query, with noise.
    """

    weights: Float[Array, "prompt d"]
    queries: Float[Array, "prompt d"]
    labels: Float[Array, "prompt"]


def draw_prompts(law: PromptLaw, key: UInt32[Array, "2"], count: int) -> Prompts:
    """Draws weights, queries and their labels.

    Args:
        law: Of prompts and queries.
        key: Two words.
        count: Number of prompts.
    """
    d = len(law.factor)
    normals = standard_normals(key, (count, 2 * d + 1), 0).astype(jnp.float64)
    weights = jnp.sqrt(law.arrays.weight_variance) * normals[:, :d]
    queries = normals[:, d : 2 * d] @ law.arrays.query_factor.T
    noise = law.query_noise * normals[:, 2 * d]
    return Prompts(weights, queries, (weights * queries).sum(-1) + noise)


class Whitening(NamedTuple):
    """Tokens as linear functions of standard normal ones: ``x = R n``, ``y = w^T x + s m``.

    ``(n, m)`` has ``d + 1`` independent entries, or ``d`` where labels have no noise.

    Attributes:
        law: With ``R`` and ``s``, the standard deviation of the noise of labels.
        weights: The weights ``w`` of each prompt.
    """

    law: PromptLaw
    weights: Float[Array, "prompt d"]

    def functional(
        self, of_token: Float[Array, "prompt head d+1"]
    ) -> Float[Array, "prompt head entries"]:
        """A linear functional of tokens as one of standard normal ones."""
        inputs, label = of_token[..., :-1], of_token[..., -1:]
        white = (inputs + label * self.weights[:, None, :]) @ self.law.factor
        noise = self.law.noise
        return white if noise is None else jnp.concatenate([white, noise * label], -1)

    def token(self, white: Float[Array, "prompt head entries"]) -> Float[Array, "prompt head d+1"]:
        """A combination of tokens, from that of standard normal ones."""
        d = len(self.law.factor)
        inputs = white[..., :d] @ self.law.factor.T
        label = (inputs * self.weights[:, None, :]).sum(-1, keepdims=True)
        if self.law.noise is not None:
            label = label + self.law.noise * white[..., d:]
        return jnp.concatenate([inputs, label], -1)
