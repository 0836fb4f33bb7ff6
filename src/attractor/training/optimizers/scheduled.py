"""Optimizers whose hyperparameters are functions of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from attractor.attention.scaled import Scaled
from attractor.training.optimizers.hyperparameters import example_of
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.schedules import Schedule

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

    weight_decay: Any
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


def scheduled(
    schedules: Mapping[str, Callable[[Any], Any]],
    with_values: Callable[[dict[str, Any]], Optimizer],
) -> ScheduledOptimizer:
    """An optimizer whose state counts steps, made of one with numbers.

    Args:
        schedules: Functions of the number of steps taken, by the name of the hyperparameter.
        with_values: Makes the optimizer, given numbers for these, traced ones perhaps. The form of
            its state does not depend on them.
    """
    declared = with_values(example_of(schedules))

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
    retract = declared.retract
    optimizer: Any = ScheduledOptimizer(
        init,
        update,
        settings=settings,
        retract=retract and (lambda parameters, state: retract(parameters, state.memory)),
        takes="any",
        **declared.declared,
    )
    optimizer.weight_decay = schedules.get("weight_decay", declared.weight_decay)
    optimizer._schedules = schedules
    optimizer._with_values = with_values
    return optimizer


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called in the settings of a run."""
    return getattr(function, "__qualname__", repr(function))


def _number(schedule: Callable[[Any], Any], count: Int[Array, ""]) -> Float[Array, ""]:
    """What a schedule comes to, in the precision of its own numbers, or that of what it meets."""
    if isinstance(schedule, Schedule):
        return jnp.asarray(schedule(count))
    return jax.lax.full_like(jnp.asarray(0.0), schedule(count))  # weak, as Python's numbers are
