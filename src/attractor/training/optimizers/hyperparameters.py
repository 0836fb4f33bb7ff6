"""Hyperparameters as data: optimizers that differ in their numbers alone are compiled once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PyTree

from attractor.attention.scaled import Scaled
from attractor.support.checks import check_flag
from attractor.training.optimizers.checks import (
    check_function_of_step,
    check_hyperparameter,
    check_scheduled,
    is_zero,
)
from attractor.training.optimizers.optimizer import EXAMPLE, Optimizer, rebuilt
from attractor.training.optimizers.schedules import Schedule

Check = Callable[[str, Any], Any]
"""Takes the name of a setting and its value; returns it as it is kept, or refuses it."""
Maker = TypeVar("Maker", bound=Callable[..., Optimizer])

_STEP_SIZES = ("learning_rate", "scale")
"""Hyperparameters that every step is a multiple of."""


class ScheduledState(NamedTuple):
    """The state of an optimizer with schedules.

    Attributes:
        step: The number of steps taken, the argument of the schedules.
        memory: The state of the same optimizer with numbers.
    """

    step: Int[Array, ""]
    memory: PyTree

    def after_step(self, memory: PyTree) -> ScheduledState:
        """The state after one more step, which leaves this memory."""
        return ScheduledState(jnp.asarray(optax.safe_increment(self.step)), memory)


class ScheduledOptimizer(Optimizer):
    """An optimizer that is made anew in every step, with the numbers of that step."""

    _schedules: Mapping[str, Callable[[Any], Any]]
    _with_values: Callable[[dict[str, Any]], Optimizer]

    def at_step(self, memory: ScheduledState) -> Optimizer:
        """The optimizer of the next step, with a number for every schedule."""
        # Quotients and roots of int32 are single precision in JAX, whatever the run's precision.
        count = memory.step.astype(jnp.result_type(int))
        return self._with_values(
            {name: _number(schedule, count) for name, schedule in self._schedules.items()}
        )

    def step(
        self, gradient: PyTree[Scaled], memory: ScheduledState, parameters: PyTree, **further: Array
    ) -> tuple[PyTree, ScheduledState]:
        """Takes one step at a gradient of any magnitude; returns parameters and memory."""
        optimizer = self.at_step(memory)
        parameters, held = optimizer.step(gradient, memory.memory, parameters, **further)
        return parameters, memory.after_step(held)

    def at_rest(self, memory: ScheduledState, before: ScheduledState) -> Bool[Array, ""]:
        """Whether the same gradient would move nothing again, in no later step either.

        Steps that only become shorter stay below rounding. Of other hyperparameters the value has
        to be the same from now on, and of functions that are no ``Schedule`` nothing is known.
        """
        rests = super().at_rest(memory.memory, before.memory)
        for name, schedule in self._schedules.items():
            if not isinstance(schedule, Schedule):
                rests &= memory.step == before.step
            elif name not in _STEP_SIZES:
                rests &= schedule.is_constant(before.step)
        return rests


def hyperparameters(*names: str, **checks: Check) -> Callable[[Maker], Maker]:
    """Declares which arguments of a function that makes an optimizer are numbers, not structure.

    They are checked against the bounds of their names (``check_hyperparameter``), those that are
    True or False by default are to be either, and the others are checked as is said here: the
    function is given what the checks return.

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
        **checks: Checks of further arguments, or of numbers before that of their bounds.
    """

    def declare_numbers(make: Maker) -> Maker:
        signature = inspect.signature(make)
        flags = (
            name for name, one in signature.parameters.items() if isinstance(one.default, bool)
        )
        checked = dict.fromkeys(flags, check_flag) | checks

        def make_with_numbers(given: dict[str, Any]) -> Optimizer:
            def remake(values: Mapping[str, Any]) -> Optimizer:
                other = {name: _with_numbers(name, given[name], values) for name in names}
                return make_with_numbers(given | other)

            numbers = {}
            for name in names:
                numbers |= _numbers(name, given[name])
            several = {name: value for name, value in numbers.items() if isinstance(value, tuple)}
            if several:
                first = {name: values[0] for name, values in several.items()}
                return remake(first).with_several(several)
            data = (*given.values(), *numbers.values())  # traced numbers are not hashable
            optimizer = (made if _are_hashable(data) else make_with_schedules)(*given.values())
            optimizer.hyperparameters = numbers
            optimizer._remake = remake
            return optimizer

        def make_with_schedules(*settings: Any) -> Optimizer:
            given = dict(zip(signature.parameters, settings, strict=True))
            schedules = {name: given[name] for name in names if callable(given[name])}
            if not schedules:
                return make(**given)
            return _scheduled(schedules, lambda values: make_with_numbers(given | values))

        # By type as well, as True is 1 to a dictionary.
        made = functools.lru_cache(maxsize=None, typed=True)(make_with_schedules)

        @functools.wraps(make)
        def make_checked(*settings: Any, **further: Any) -> Optimizer:
            bound = signature.bind(*settings, **further)
            bound.apply_defaults()
            given = bound.arguments
            for name, check in checked.items():
                given[name] = check(name, given[name])
            for name in names:
                given[name] = check_number_or_schedule(name, given[name])
            return make_with_numbers(given)

        return make_checked  # pyright: ignore[reportReturnType] - it has the signature of make

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


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called in the settings of a run."""
    return getattr(function, "__qualname__", repr(function))


def _are_hashable(values: tuple[Any, ...]) -> bool:
    try:
        hash(values)
    except TypeError:
        return False
    return True


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


def _scheduled(
    schedules: Mapping[str, Callable[[Any], Any]],
    with_values: Callable[[dict[str, Any]], Optimizer],
) -> ScheduledOptimizer:
    """An optimizer whose state counts steps, made of one with numbers.

    Args:
        schedules: Functions of the number of steps taken, by the name of the hyperparameter.
        with_values: Makes the optimizer, given numbers for these, traced ones perhaps. The form of
            its state does not depend on them.
    """
    declared = with_values(dict.fromkeys(schedules, EXAMPLE))

    def init(params: PyTree) -> ScheduledState:
        start = ScheduledState(jnp.zeros((), jnp.int32), None)
        return start._replace(memory=optimizer.at_step(start).init(params))

    def update(
        updates: PyTree, state: ScheduledState, params: PyTree | None = None, **further: Any
    ) -> tuple[PyTree, ScheduledState]:
        steps, held = optimizer.at_step(state).update(updates, state.memory, params, **further)
        return steps, state.after_step(held)

    settings = dict(declared.settings)
    for name, schedule in schedules.items():
        known = isinstance(schedule, Schedule)
        settings |= schedule.numbers(name) if known else {name: name_of(schedule)}
    retract = declared.rule.retract
    optimizer = rebuilt(
        declared,
        ScheduledOptimizer,
        init,
        update,
        settings=settings,
        rule=declared.rule._replace(
            weight_decay=schedules.get("weight_decay", declared.rule.weight_decay),
            retract=retract and (lambda parameters, state: retract(parameters, state.memory)),
            log_time_step=None,
        ),
        _schedules=schedules,
        _with_values=with_values,
    )
    return optimizer


def _number(schedule: Callable[[Any], Any], count: Int[Array, ""]) -> Float[Array, ""]:
    """What a schedule comes to, in the precision of its own numbers, or that of what it meets."""
    if isinstance(schedule, Schedule):
        return jnp.asarray(schedule(count))
    return jax.lax.full_like(jnp.asarray(0.0), schedule(count))  # weak, as Python's numbers are
