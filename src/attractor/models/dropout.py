"""Dropout whose random bits are a function of a key and a place, computed where they are used.

``jax.random`` would write its bits to memory first: on a CPU that adds half to the time of a
training step, and doubles the time of compiling it.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

_WORDS = 2.0**32
_GOLDEN = 0x9E3779B9
_MULTIPLIERS = (0x21F0AAAD, 0xD35A2D97)


def drop(
    x: Float[Array, "*shape"], probability: float, key: jax.Array | None
) -> Float[Array, "*shape"]:
    """Sets every number to zero with a probability, and scales the others so that means stay.

    Args:
        x: The numbers.
        probability: The probability.
        key: None outside training, where nothing is dropped.
    """
    if key is None or probability == 0:
        return x
    kept = _words(key, x.shape) >= jnp.uint32(round(probability * _WORDS))
    return jnp.where(kept, x * (1 / (1 - probability)), 0)


def _words(key: jax.Array, shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    """A random word for every place: its number and the two words of the key, mixed.

    Shifts, exclusive ors and the multipliers of a hash of low bias; not for more than dropout.
    """
    first, second = jax.random.key_data(key).astype(jnp.uint32)[..., :2]
    place = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    x = place * jnp.uint32(_GOLDEN) + first
    x = (x ^ (x >> 16)) * jnp.uint32(_MULTIPLIERS[0]) ^ second
    x = (x ^ (x >> 15)) * jnp.uint32(_MULTIPLIERS[1])
    return x ^ (x >> 15)
