"""Every random number comes from a key named by (seed, instance, purpose, step).

Two computations that share those four numbers share their randomness, whatever else runs beside
them: trial 37 run alone draws what trial 37 of 100 draws.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attractor.checks import shown
from attractor.errors import InvalidInputError
from attractor.precision import double_precision

if TYPE_CHECKING:
    import jax


def key(seed: int, instance: int, purpose: str, step: int = 0) -> jax.Array:
    """Returns the JAX key that belongs to a seed, an instance, a purpose and a step.

    Args:
        seed: The user's seed.
        instance: The number of the data set.
        purpose: What the numbers are for, such as ``"initial weights"``.
        step: The training step, where randomness is drawn anew each step.

    Returns:
        A typed scalar key.

    Raises:
        InvalidInputError: If the seed is not an integer in [0, 2^63).
    """
    return keys(np.array([check_seed("seed", seed)]), np.array([instance]), purpose, step)[0]


def keys(
    seeds: Int[np.ndarray, "trial"],
    instances: Int[np.ndarray, "trial"],
    purpose: str,
    step: int = 0,
) -> jax.Array:
    """Returns the keys of many trials at once, each the one ``key`` gives."""
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    def one(seed: Int[Array, ""], instance: Int[Array, ""]) -> jax.Array:
        result = jax.random.key(seed)
        for number in (instance, zlib.crc32(purpose.encode()), step):
            result = jax.random.fold_in(result, number)
        return result

    with double_precision():  # a seed may need more than 32 bits
        return jax.vmap(one)(jnp.asarray(seeds), jnp.asarray(instances))


def generator(seed: int, *numbers: int, purpose: str) -> np.random.Generator:
    """Returns the NumPy generator that belongs to a seed, some numbers and a purpose."""
    entropy = [check_seed("seed", seed), zlib.crc32(purpose.encode()), *numbers]
    return np.random.default_rng(entropy)


def check_seed(argument: str, seed: int) -> int:
    """Returns ``seed`` as a Python integer.

    Raises:
        InvalidInputError: If it is not an integer in [0, 2^63).
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InvalidInputError(argument, f"{seed!r} is not an integer", "Give an integer >= 0")
    if not 0 <= int(seed) < 2**63:
        raise InvalidInputError(argument, f"{seed} is out of range", "Give an integer in [0, 2^63)")
    return int(seed)


def check_key(argument: str, key: Any) -> jax.Array:
    """Checks that something is one key of JAX, of either style.

    Raises:
        InvalidInputError: If it is not.
    """
    import jax
    import jax.numpy as jnp

    if isinstance(key, jax.Array):
        typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.ndim == 0
        if typed or (key.dtype == jnp.uint32 and key.shape == (2,)):
            return key
    raise InvalidInputError(argument, f"{shown(key)} is no key", "Give one: jax.random.key(0)")
