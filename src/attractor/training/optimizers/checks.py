"""What must be true of the settings of optimizers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attractor.checks import check_number, shown
from attractor.errors import InvalidInputError
from attractor.geometry.exponent import checked_exponent


def check_learning_rate(learning_rate: Any) -> Any:
    """Checks that a learning rate is a positive finite number."""
    return _check("learning_rate", learning_rate, above=0, example=0.1)


def check_rate_or_schedule(learning_rate: Any) -> Any:
    """Checks that a learning rate is a positive finite number, or a function that gives one."""
    if isinstance(learning_rate, Tracer) or not callable(learning_rate):
        return check_learning_rate(learning_rate)
    try:
        found = jax.eval_shape(learning_rate, jax.ShapeDtypeStruct((), jnp.int32))
    except Exception as error:
        raise InvalidInputError(
            "learning_rate",
            f"the schedule {learning_rate!r} fails: {type(error).__name__}: {error}",
            "Give a function from the number of a step to one number, which JAX can trace",
        ) from error
    if getattr(found, "shape", None) != ():
        raise InvalidInputError(
            "learning_rate",
            f"the schedule {learning_rate!r} gives {found}",
            "Give a function from the number of a step to one number",
        )
    return learning_rate


def check_mirror_exponent(p: Any, argument: str = "p") -> float:
    """Checks that the exponent of a mirror map is a plain number above 1."""
    check_not_traced(argument, p)
    try:
        value = checked_exponent(p)
    except InvalidInputError:
        value = math.nan
    if not 1 < value < math.inf:
        raise InvalidInputError(
            argument, f"{p!r} is not a number above 1", "Give one, such as 1.5; not infinity"
        )
    return value


def check_not_traced(argument: str, value: Any) -> None:
    """Checks that a setting on which the program depends is known before it is compiled."""
    if isinstance(value, jax.Array):
        raise InvalidInputError(
            argument,
            "it is an array of JAX, and what is compiled depends on its value",
            "Give a plain number; of optax.inject_hyperparams, ask for the learning rate alone: "
            "inject_hyperparams(lambda learning_rate: mirror_descent(learning_rate, p=1.1))",
        )


def check_scale(scale: Any) -> Any:
    """Checks that the multiple of a step is a positive finite number."""
    return _check("scale", scale, above=0, example=1.0)


def check_weight_decay(weight_decay: Any) -> Any:
    """Checks that a weight decay is a finite number, zero or more."""
    return check_not_negative("weight_decay", weight_decay)


def check_not_negative(argument: str, value: Any) -> Any:
    """Checks that an argument is a finite number, zero or more."""
    return _check(argument, value, least=0, example=0)


def check_decay(argument: str, decay: Any) -> Any:
    """Checks that what remains of a memory after a step is a number in [0, 1)."""
    return _check(argument, decay, least=0, below=1, example=0.9)


def _check(argument: str, value: Any, **bounds: float) -> Any:
    """Checks a number, or several; a traced one, as ``jax.vmap`` gives it, is taken as it is."""
    if isinstance(value, Tracer):
        return value
    if not (isinstance(value, Sequence) and not isinstance(value, str)) and np.ndim(value) != 1:
        return check_number(argument, value, **bounds)
    several = tuple(check_number(argument, each, **bounds) for each in value)
    if not several or len(set(several)) < len(several):
        problem = "names no value" if not several else "names a value twice"
        raise InvalidInputError(argument, f"{shown(value)} {problem}", "Give values that differ")
    if 0 in several:
        raise InvalidInputError(
            argument,
            "zero is among the values, which leaves a term out and so is another algorithm",
            "Train with zero by itself",
        )
    return several
