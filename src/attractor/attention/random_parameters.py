"""Random parameters, in the arithmetic of ``jax.random``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

_PORTION = 4096
"""Random numbers that are worked on together."""


def words_of(
    key: Any,
) -> tuple[UInt32[np.ndarray, "*trials"], UInt32[np.ndarray, "*trials"]]:
    """The two words of a key of JAX, or of each of an array of them."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    data = np.asarray(jax.random.key_data(key) if typed else key)
    return data[..., 0], data[..., 1]


def between(unit: Float[np.ndarray, "*shape"], bound: float) -> Float[np.ndarray, "*shape"]:
    """Numbers on [0, 1) moved to [-bound, bound], in the arithmetic of ``jax.random.uniform``."""
    filled = np.pad(unit.ravel(), (0, -unit.size % _PORTION + _PORTION * (not unit.size)))
    portions = filled.reshape(-1, _PORTION)  # all of one size, compiled once
    moved = np.concatenate([_moved(portion, bound) for portion in portions])
    return moved[: unit.size].reshape(unit.shape)


@jax.jit
def _moved(unit: Float[Array, "n"], bound: Float[Array, ""]) -> Float[Array, "n"]:
    return jnp.maximum(-bound, unit * (bound + bound) - bound)
