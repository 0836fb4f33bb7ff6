"""Arrays of any library, without importing it."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.errors import InvalidInputError
from attractor.precision import as_float64


def to_numpy(argument: str, value: Any) -> Float[np.ndarray, "..."]:
    """A float64 copy of a PyTorch tensor on any device, a JAX or NumPy array, or a list.

    NaN and infinity are kept: training may diverge, and is not to be ended for it.

    Args:
        argument: The name to use in an error.
        value: The array.

    Raises:
        InvalidInputError: If it holds no real numbers, or numbers in half precision.
    """
    for leave in ("detach", "cpu"):  # the graph, then the device
        if hasattr(value, leave):
            value = getattr(value, leave)()
    try:
        return as_float64(argument, value, finite=False)
    except TypeError:  # a type of number that NumPy does not have
        raise InvalidInputError(
            argument,
            f"the numbers are stored as {getattr(value, 'dtype', type(value).__name__)}",
            "Give float32 or float64",
        ) from None
