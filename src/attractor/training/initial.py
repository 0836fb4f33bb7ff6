"""Initial parameters that a user gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attractor.attention import Parameterization
from attractor.errors import InvalidInputError
from attractor.precision import as_float64
from attractor.tokens import Tokens


def check_initial(
    initial: Any, parameterization: Parameterization, tokens: Tokens, seeds: int
) -> dict[str, np.ndarray] | None:
    """Gives the user's arrays their axes of instances and seeds, without copying.

    Args:
        initial: One array, or one for each name the parameterization has; None for random ones.
        parameterization: What the arrays make up.
        tokens: The data sets.
        seeds: Number of seeds.

    Raises:
        InvalidInputError: If a name or a shape is wrong, or training could not leave them.
    """
    if initial is None:
        return None
    shapes = parameterization.shapes(tokens.key_dimension, tokens.query_dimension)
    given = initial if isinstance(initial, Mapping) else _only(initial, shapes)
    if set(given) != set(shapes):
        raise InvalidInputError(
            "initial", f"it has {sorted(given)}", f"Give exactly {sorted(shapes)}"
        )
    arrays = {
        name: _with_trials(name, given[name], shape, tokens.instances or 1, seeds)
        for name, shape in shapes.items()
    }
    parameterization.check_initial(arrays)
    lead = (tokens.instances or 1, seeds)
    return {name: np.broadcast_to(arrays[name], (*lead, *shape)) for name, shape in shapes.items()}


def _only(initial: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    if len(shapes) > 1:
        example = ", ".join(f"{name!r}: ..." for name in shapes)
        raise InvalidInputError(
            "initial", "it is one array, but several are trained", f"Give {{{example}}}"
        )
    return {next(iter(shapes)): initial}


def _with_trials(
    name: str, array: Any, shape: tuple[int, ...], instances: int, seeds: int
) -> np.ndarray:
    array = as_float64("initial", array)
    shapes = {
        shape: array[None, None],
        (instances, *shape): array[:, None] if array.ndim == len(shape) + 1 else array,
        (instances, seeds, *shape): array,
    }
    if array.shape not in shapes:
        raise InvalidInputError(
            "initial",
            f"the shape of {name} is {array.shape}",
            f"Give {shape}, {(instances, *shape)} for each instance, or "
            f"{(instances, seeds, *shape)} for each instance and seed",
        )
    return shapes[array.shape]
