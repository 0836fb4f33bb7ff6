"""Hyperparameters as data: optimizers that differ in their numbers alone are compiled once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array, Float

from attractor.training.optimizers.checks import (
    check_function_of_step,
    check_hyperparameter,
    check_scheduled,
)
from attractor.training.optimizers.schedules import Schedule

if TYPE_CHECKING:
    from attractor.training.optimizers.optimizer import Optimizer

Number: TypeAlias = float | Float[Array, ""]
"""A hyperparameter, which may be traced."""
Values: TypeAlias = float | Sequence[float] | np.ndarray | Float[Array, ""]
"""One value of a number, or several, which ``train`` runs side by side."""
Numbers: TypeAlias = Values | Schedule | optax.Schedule
"""A hyperparameter: one value, several, or a function of the number of steps taken before."""

_EXAMPLE = 0.5
"""A value that any hyperparameter may have."""


def is_zero(number: Any) -> bool:
    """Whether a number is known to be zero, so that the term it multiplies is left out.

    Of a traced number nothing is known; no traced hyperparameter is zero.
    """
    return not isinstance(number, jax.Array) and number == 0


def hyperparameters(
    *names: str,
) -> Callable[[Callable[..., Optimizer]], Callable[..., Optimizer]]:
    """Declares which arguments of a function that makes an optimizer are numbers, not structure.

    They are checked against the bounds of their names (``check_hyperparameter``).

    Training takes these numbers as data of each trial, so that a second learning rate compiles
    nothing. The function has to work with traced numbers, too. Zero is structure: the term it
    multiplies is not compiled.

    Of a number there may be several values, in a tuple. The same settings give the same object, for
    loops of one's own where optimizers are static arguments.

    Any of them may be a function of the number of steps taken before. The function is then called
    in every step, with the number of that step, which is traced. The numbers of a ``Schedule`` are
    data of a trial, too; any other function is structure.

    Args:
        names: The arguments.
    """

    def declare_numbers(make: Callable[..., Optimizer]) -> Callable[..., Optimizer]:
        signature = inspect.signature(make)

        def make_with_numbers(*settings: Any) -> Optimizer:
            given = signature.bind(*settings).arguments

            def remake(values: Mapping[str, Any]) -> Optimizer:
                other = {name: _with_numbers(name, given[name], values) for name in names}
                return make_with_numbers(*(given | other).values())

            numbers = {}
            for name in names:
                numbers |= _numbers(name, given[name])
            several = {name: value for name, value in numbers.items() if isinstance(value, tuple)}
            if several:
                first = {name: values[0] for name, values in several.items()}
                return remake(first).with_several(several)
            traced = any(isinstance(number, jax.Array) for number in numbers.values())
            optimizer = (make_with_schedules if traced else made)(*settings)
            optimizer.hyperparameters = numbers
            optimizer._remake = remake
            return optimizer

        def make_with_schedules(*settings: Any) -> Optimizer:
            from attractor.training.optimizers.scheduled import scheduled  # it imports this file

            given = signature.bind(*settings).arguments
            schedules = {name: given[name] for name in names if callable(given[name])}
            if not schedules:
                return make(*settings)
            return scheduled(
                schedules, lambda values: make_with_numbers(*(given | values).values())
            )

        made = functools.cache(make_with_schedules)

        @functools.wraps(make)
        def make_checked(*settings: Any, **further: Any) -> Optimizer:
            given = signature.bind(*settings, **further).arguments
            checked = {name: check_number_or_schedule(name, given[name]) for name in names}
            return make_with_numbers(*(given | checked).values())

        return make_checked

    return declare_numbers


def check_number_or_schedule(argument: str, value: Any) -> Any:
    """Checks a hyperparameter: one number, several, or a function of the step.

    Raises:
        InvalidInputError: If it can be none of these.
    """
    if isinstance(value, Schedule):
        numbers = value.numbers(argument)
        first = check_scheduled(argument, numbers[argument])
        return value.with_numbers(argument, {argument: first})
    if isinstance(value, Tracer) or not callable(value):
        return check_hyperparameter(argument, value)
    check_function_of_step(argument, value)
    return value


def example_of(numbers: Mapping[str, Any]) -> dict[str, float]:
    """Placeholders for the numbers, for what does not depend on their values."""
    return dict.fromkeys(numbers, _EXAMPLE)


def _numbers(name: str, value: Any) -> dict[str, Any]:
    """What is data of a hyperparameter, by name."""
    if isinstance(value, Schedule):
        return value.numbers(name)
    is_data = isinstance(value, float | tuple | jax.Array) and not is_zero(value)
    return {name: value} if is_data else {}


def _with_numbers(name: str, value: Any, numbers: Mapping[str, Any]) -> Any:
    """A hyperparameter with other numbers, where there are any of its names."""
    if isinstance(value, Schedule):
        chosen = {own: numbers[own] for own in value.names(name) if own in numbers}
        return value.with_numbers(name, chosen)
    return numbers.get(name, value)
