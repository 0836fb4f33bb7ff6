"""What must be true of the settings of optimizers."""

from __future__ import annotations

import math
from typing import Any

from attractor.errors import InvalidInputError


def check_learning_rate(learning_rate: float) -> float:
    """Checks that a learning rate is a positive finite number."""
    value = _number(learning_rate)
    if not (math.isfinite(value) and value > 0):
        raise InvalidInputError(
            "learning_rate", f"{learning_rate!r} is not a positive number", "Give one, such as 0.1"
        )
    return value


def check_weight_decay(weight_decay: float) -> float:
    """Checks that a weight decay is a finite number, zero or more."""
    return check_not_negative("weight_decay", weight_decay)


def check_not_negative(argument: str, value: float) -> float:
    """Checks that an argument is a finite number, zero or more."""
    number = _number(value)
    if not (math.isfinite(number) and number >= 0):
        raise InvalidInputError(argument, f"{value!r} is not a number >= 0", "Give one, such as 0")
    return number


def check_flag(argument: str, value: bool) -> bool:
    """Checks that an argument is True or False."""
    if not isinstance(value, bool):
        raise InvalidInputError(
            argument, f"{value!r} is neither True nor False", "Give one of them"
        )
    return value


def check_decay(argument: str, decay: float) -> float:
    """Checks that what remains of a memory after a step is a number in [0, 1)."""
    value = _number(decay)
    if not 0 <= value < 1:
        raise InvalidInputError(argument, f"{decay!r} is not a number in [0, 1)", "Give 0.9, say")
    return value


def check_iterations(argument: str, iterations: int) -> int:
    """Checks that a number of iterations is a positive integer."""
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise InvalidInputError(
            argument, f"{iterations!r} is not an integer >= 1", "Give one, such as 5"
        )
    return iterations


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
