"""Schedules of hyperparameters, made of numbers that training takes as data."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attractor.support.checks import MOST_STEPS, check_number, naming, shown
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.checks import check_one_or_several, refuse_several

Values: TypeAlias = float | Sequence[float] | np.ndarray | Float[Array, ""]
"""One value of a number, or several, which ``train`` runs side by side."""
Numbers: TypeAlias = Any
"""A hyperparameter: one value, several, or a function of the number of steps taken before.

What it may be is checked where an optimizer is made. The function that makes it is given a number.
"""


@dataclasses.dataclass(frozen=True)
class Schedule(abc.ABC):
    """A hyperparameter as a function of the number of steps taken before.

    Its fields are numbers, each one value or several. As hyperparameters of an optimizer the first
    has the name of what is scheduled, such as ``learning_rate``, and each other one its own behind
    that: ``learning_rate_exponent``.
    """

    def __call__(self, count: int | Int[Array, ""]) -> float | Float[Array, ""]:
        """The value in the step after so many.

        Raises:
            InvalidInputError: If a number has several values.
        """
        for field in dataclasses.fields(self):
            refuse_several(field.name, getattr(self, field.name))
        return self.value(count)

    @abc.abstractmethod
    def value(self, count: int | Int[Array, ""]) -> float | Float[Array, ""]:
        """The value in the step after so many, for one value of each number."""

    @abc.abstractmethod
    def is_constant(self, count: Int[Array, ""]) -> bool | Bool[Array, ""]:
        """Whether all steps after so many have the same value; no step has a larger one."""

    @classmethod
    def names(cls, argument: str) -> tuple[str, ...]:
        """What its numbers are called as hyperparameters, in the order of the fields."""
        _, *others = dataclasses.fields(cls)
        return (argument, *(f"{argument}_{field.name}" for field in others))

    def numbers(self, argument: str) -> dict[str, Any]:
        """Its numbers by these names."""
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return dict(zip(self.names(argument), values, strict=True))

    def with_numbers(self, argument: str, values: Mapping[str, Any]) -> Schedule:
        """The same schedule with other values of some numbers, by these names."""
        all_values = self.numbers(argument) | dict(values)
        return type(self)(*(all_values[name] for name in self.names(argument)))


@dataclasses.dataclass(frozen=True)
class PowerDecay(Schedule):
    """``initial (1 + count / offset)^-exponent``; see ``power_decay``."""

    initial: Any
    exponent: Any
    offset: Any

    def value(self, count: int | Int[Array, ""]) -> float | Float[Array, ""]:
        """The value in the step after so many."""
        return self.initial * (1 + count / self.offset) ** -self.exponent

    def is_constant(self, count: Int[Array, ""]) -> bool | Bool[Array, ""]:
        """Whether it never decays."""
        return self.exponent == 0


@dataclasses.dataclass(frozen=True)
class Until(Schedule):
    """A value in the first steps, zero afterwards; see ``until``."""

    first: Any
    steps: Any

    def value(self, count: int | Int[Array, ""]) -> float | Float[Array, ""]:
        """The value in the step after so many."""
        return self.first * (count < self.steps)

    def is_constant(self, count: Int[Array, ""]) -> bool | Bool[Array, ""]:
        """Whether it is zero by now."""
        return count >= self.steps


def power_decay(initial: Values, exponent: Values, offset: Values = 1.0) -> Schedule:
    """A hyperparameter that decays by a power of the step, such as a learning rate.

    Step ``t = 1, 2, ...`` has the value

        initial (1 + (t - 1) / offset)^-exponent

    which is ``initial t^-exponent`` by default, and ``initial`` at the first step in any case. The
    ``(t + 1)^-a`` of theorems on Adam (Zhang, Zou and Cao, arXiv 2406.10650) is
    ``power_decay(2**-a, a, offset=2)``. With an exponent of zero it is the number ``initial``, to
    the last bit.

    Its numbers are hyperparameters as others are: each may have several values, which ``train``
    runs side by side, compiled once. Their axes are called ``learning_rate``,
    ``learning_rate_exponent`` and ``learning_rate_offset``.

    Args:
        initial: The value at the first step.
        exponent: The power, zero or more. The sum over all steps is infinite up to 1.
        offset: How many steps it takes for the base to double, positive.

    Raises:
        InvalidInputError: If an argument is out of its range.

    Example:
        >>> import attractor as at
        >>> optimizer = at.sign_momentum(at.power_decay([0.1, 0.3], [0.0, 0.5, 1.0]))
        >>> optimizer.axes
        {'learning_rate': (0.1, 0.3), 'learning_rate_exponent': (0.0, 0.5, 1.0)}
        >>> at.power_decay(0.1, 0.5)(3)  # in the step after three, the fourth
        0.05
    """
    return PowerDecay(
        check_one_or_several("initial", initial, check_number),
        check_one_or_several("exponent", exponent, _check_exponent),
        check_one_or_several("offset", offset, _check_offset),
    )


def until(steps: Values, value: Values) -> Schedule:
    """A hyperparameter that is switched off at a step, such as a weight decay.

    The first ``steps`` steps have the value; after them it is zero, exactly. Both numbers are
    hyperparameters as others are, each with several values if need be; as a weight decay their
    axes are called ``weight_decay_steps`` and ``weight_decay``.

    Args:
        steps: How many steps have the value, zero or more.
        value: The value in them.

    Raises:
        InvalidInputError: If an argument is out of its range.

    Example:
        >>> import attractor as at
        >>> decay = at.until([100, 1000], 0.01)
        >>> at.normalized_gradient_descent(0.1, weight_decay=decay).axes
        {'weight_decay_steps': (100, 1000)}
        >>> [at.until(2, 0.01)(count) for count in range(4)]
        [0.01, 0.01, 0.0, 0.0]
    """
    return Until(
        check_one_or_several("value", value, check_number),
        check_one_or_several("steps", steps, _check_steps),
    )


def schedule_settings(name: str) -> dict[str, str]:
    """The settings that make a number follow a schedule, and which numbers of that they are.

    They have the names that these numbers have in results: ``learning_rate_exponent``.
    """
    return {f"{name}_{number}": number for number in ("exponent", "offset", "steps")}


def with_schedule(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, in which the numbers of a schedule of one of them have become that.

    Raises:
        InvalidInputError: If they make no schedule.
    """
    parts = {
        number: settings[own] for own, number in schedule_settings(name).items() if own in settings
    }
    plain = {own: value for own, value in settings.items() if own not in schedule_settings(name)}
    if not parts:
        return plain
    if name not in plain:
        problem, remedy = f"there is no {name}", f"Give {name}, too"
    elif {*parts} != {"steps"} and ("exponent" not in parts or "steps" in parts):
        problem = f"{name} with {' and '.join(parts)} makes no schedule"
        remedy = f"Give {name}_exponent, perhaps with {name}_offset; or {name}_steps"
    else:
        named = {number: f"{name}_{number}" for number in parts}
        with naming(initial=name, value=name, **named):
            if "steps" in parts:
                return plain | {name: until(value=plain[name], **parts)}
            return plain | {name: power_decay(plain[name], **parts)}
    raise InvalidInputError(f"{name}_{next(iter(parts))}", problem, remedy)


def _check_exponent(argument: str, value: Any) -> float:
    return check_number(argument, value, least=0, example=0.5)


def _check_offset(argument: str, value: Any) -> float:
    return check_number(argument, value, above=0, example=1.0)


def _check_steps(argument: str, value: Any) -> int:
    """Checks a number of steps, which may have come through floating point."""
    number = check_number(argument, value, least=0, most=MOST_STEPS, example=1000)
    if not number.is_integer():
        raise InvalidInputError(argument, f"{shown(value)} is not whole", "Give 1000, say")
    return int(number)
