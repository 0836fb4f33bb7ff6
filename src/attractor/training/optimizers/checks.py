"""The settings of optimizers: what numbers they may be, and their checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from attractor.geometry.exponent import checked_exponent
from attractor.support.checks import check_number, shown
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import traced

Number: TypeAlias = float | Float[Array, ""]
"""A hyperparameter, which may be traced."""
_POSITIVE = {"above": 0, "example": 0.1}
_SHARE = {"least": 0, "below": 1, "example": 0.9}
_MULTIPLE = {"least": 0, "example": 0.01}
BOUNDS = {
    "learning_rate": _POSITIVE,
    "scale": _POSITIVE | {"example": 1.0},
    **dict.fromkeys(("b1", "b2", "decay", "momentum"), _SHARE),
    **dict.fromkeys(("weight_decay", "dual_weight_decay"), _MULTIPLE),
    "eps": _MULTIPLE | {"example": 1e-8},
}
"""The bounds of every hyperparameter, by its name, and a value within them."""


def is_zero(number: Any) -> bool:
    """Whether a number is known to be zero, so that the term it multiplies is left out.

    Of a traced number nothing is known; no traced hyperparameter is zero.
    """
    return not isinstance(number, jax.Array) and number == 0


def check_learning_rate(learning_rate: Any) -> Any:
    """Checks that a learning rate is a positive finite number."""
    return check_hyperparameter("learning_rate", learning_rate)


@traced
def check_function_of_step(argument: str, schedule: Callable[[Any], Any]) -> None:
    """Checks that JAX can trace a schedule, and that it gives one number.

    Raises:
        InvalidInputError: If it fails, or gives something else.
    """
    try:
        hash(schedule)
        found = jax.eval_shape(schedule, jax.ShapeDtypeStruct((), jnp.result_type(int)))
    except Exception as error:
        raise InvalidInputError(
            argument,
            f"the schedule {schedule!r} fails: {type(error).__name__}: {error}",
            "Give a function from the number of a step to one number, which JAX can trace",
        ) from error
    if getattr(found, "shape", None) != ():
        raise InvalidInputError(
            argument,
            f"the schedule {schedule!r} gives {found}",
            "Give a function from the number of a step to one number",
        )


def check_mirror_exponent(p: Any, argument: str = "p") -> float:
    """Checks that the exponent of a mirror map is a plain number above 1."""
    check_not_traced(argument, p)
    try:
        value = checked_exponent(p)
    except InvalidInputError:
        value = math.nan
    if not 1 < value < math.inf:
        remedy = "Give one, such as 1.5; not infinity"
        if isinstance(p, Sequence | np.ndarray) and not isinstance(p, str):
            remedy = "Train once for each: it is the norm that is descended, of which a run has one"
        raise InvalidInputError(argument, f"{p!r} is not a number above 1", remedy)
    return value


def check_not_traced(argument: str, value: Any) -> Any:
    """Checks that a setting on which the program depends is known before it is compiled."""
    if isinstance(value, jax.Array):
        raise InvalidInputError(
            argument,
            "it is an array of JAX, and what is compiled depends on its value",
            "Give a plain number; of optax.inject_hyperparams, ask for the learning rate alone: "
            "inject_hyperparams(lambda learning_rate: mirror_descent(learning_rate, p=1.1))",
        )
    return value


def check_one_hyperparameter(argument: str, value: Any) -> Any:
    """Checks one number of an optimizer against the bounds of its name; a traced one passes.

    A name that the library does not use has none.

    Raises:
        InvalidInputError: If it is out of bounds.
    """
    if isinstance(value, Tracer):
        return value
    return check_number(argument, value, **BOUNDS.get(argument, {}))


def check_hyperparameter(argument: str, value: Any) -> Any:
    """Checks a number of an optimizer, or several values of it, against the bounds of its name.

    A traced number, as ``jax.vmap`` gives it, is returned as it is.

    Raises:
        InvalidInputError: If a value is out of bounds, or of several two are equal or one is zero.
    """
    checked = check_scheduled(argument, value)
    if isinstance(checked, tuple) and 0 in checked:
        raise InvalidInputError(
            argument,
            "zero is among the values, which leaves a term out and so is another algorithm",
            "Train with zero by itself",
        )
    return checked


def check_scheduled(argument: str, value: Any) -> Any:
    """Checks the number that a schedule of a hyperparameter begins with, which may be zero.

    Raises:
        InvalidInputError: If a value is out of bounds, or of several two are equal.
    """
    return check_one_or_several(argument, value, check_one_hyperparameter)


def check_one_or_several(argument: str, value: Any, check_one: Callable[[str, Any], Any]) -> Any:
    """Checks a number, or several different ones, which become a tuple; a traced one passes.

    Args:
        argument: The name.
        value: The number, or a sequence or array of them.
        check_one: Takes the name and one number; returns it as a plain one, or raises.

    Raises:
        InvalidInputError: If a value cannot be used, or of several two are equal.
    """
    if isinstance(value, Tracer):
        return value
    if not (isinstance(value, Sequence) and not isinstance(value, str)) and np.ndim(value) != 1:
        return check_one(argument, value)
    several = tuple(check_one(argument, each) for each in value)
    if not several or len(set(several)) < len(several):
        problem = "names no value" if not several else "names a value twice"
        raise InvalidInputError(argument, f"{shown(value)} {problem}", "Give values that differ")
    return several


def refuse_several(argument: str, value: Any) -> None:
    """Refuses several values of a number where a single step is taken.

    Raises:
        InvalidInputError: If there are several.
    """
    if isinstance(value, tuple):
        raise InvalidInputError(
            argument,
            f"there are {len(value)} values of it, and a step takes one",
            "Give one; train(...) alone takes several side by side",
        )
