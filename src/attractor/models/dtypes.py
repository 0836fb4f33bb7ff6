"""The precisions of models."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from attractor.support.checks import shown
from attractor.support.errors import InvalidInputError


def check_dtype(argument: str, dtype: Any) -> Any:
    """Checks that a data type is a precision of a model.

    Raises:
        InvalidInputError: If it cannot.
    """
    try:
        known = None if dtype is None else jnp.dtype(dtype).name
    except TypeError:
        known = None
    if known not in ("float32", "float64", "bfloat16", "float16"):
        raise InvalidInputError(
            argument, f"{shown(dtype)} is no precision", "Give jnp.float32 or jnp.float64"
        )
    return dtype
