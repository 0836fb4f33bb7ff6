"""Initial parameters that a user gives, or the scale of random ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.support.checks import check_number, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64, as_plain
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.attention import Parameterization

INITIAL_SCALE = "initial_scale"
"""The axis of several scales, and the setting of one."""


def check_scale(
    initial: Any, parameterization: Parameterization, tokens: Tokens
) -> float | tuple[float, ...] | None:
    """What random initial parameters are to be multiplied by; None if that is not what is given.

    It is a number, or a sequence of them; but for a prompt vector a sequence is the vector itself.

    Args:
        initial: As the user gave it.
        parameterization: What is trained.
        tokens: The data sets.

    Raises:
        InvalidInputError: If a scale is negative or too large, of several two are equal, or
            training could not leave the parameters.
    """
    if initial is None or isinstance(initial, Mapping):
        return None
    shapes = parameterization.shapes(tokens.key_dimension, tokens.query_dimension)
    given = as_plain("initial", initial)
    several = given.ndim == 1 and all(len(shape) > 1 for shape in shapes.values())
    if given.dtype.kind not in "iuf" or not (given.ndim == 0 or several):
        return None
    scales = tuple(
        check_number("initial", value, least=0, most=LARGEST, example=0.1)
        for value in given.ravel().tolist()
    )
    if not scales or len(set(scales)) < len(scales):
        problem = "names a scale twice" if scales else "names no scale"
        raise InvalidInputError("initial", f"{shown(initial)} {problem}", "Give scales that differ")
    if 0 in scales:
        parameterization.check_initial({n: np.zeros(shape) for n, shape in shapes.items()})
    return scales if several else scales[0]


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
        InvalidInputError: If a name or a shape is wrong, training could not leave them, or the
            parameterization would turn random ones.
    """
    if initial is None:
        return None
    if parameterization.settings:
        raise InvalidInputError(
            "initial",
            "arrays are taken as they are, but the parameterization has a gauge",
            "Turn them, in_gauge(KeyQueryFactors(K, Q)), and train without it",
        )
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
