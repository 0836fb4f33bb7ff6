"""Hyperparameters as data: optimizers that differ in their numbers alone are compiled once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Float

from attractor.training.optimizers.checks import check_hyperparameter, check_rate_or_schedule

if TYPE_CHECKING:
    from attractor.training.optimizers.optimizer import Optimizer

Number: TypeAlias = float | Float[Array, ""]
"""A hyperparameter, which may be traced."""
Numbers: TypeAlias = float | Sequence[float] | np.ndarray | Float[Array, ""]
"""One value of a hyperparameter, or several, which ``train`` runs side by side."""

_EXAMPLE = 0.5
"""A value that any hyperparameter may have."""


def is_zero(number: Any) -> bool:
    """Whether a number is known to be zero, so that the term it multiplies is left out.

    Of a traced number nothing is known; no traced hyperparameter is zero.
    """
    return not isinstance(number, jax.Array) and number == 0


def hyperparameters(
    *names: str, scheduled: bool = False
) -> Callable[[Callable[..., Optimizer]], Callable[..., Optimizer]]:
    """Declares which arguments of a function that makes an optimizer are numbers, not structure.

    They are checked against the bounds of their names (``check_hyperparameter``).

    Training takes these numbers as data of each trial, so that a second learning rate compiles
    nothing. The function has to work with traced numbers, too. Zero is structure: the term it
    multiplies is not compiled. So is whatever is no number, such as a schedule.

    Of a number there may be several values, in a tuple. The same settings give the same object, for
    loops of one's own where optimizers are static arguments.

    Args:
        names: The arguments.
        scheduled: Whether the learning rate may also be a function of the step.
    """
    checks: dict[str, Callable[[Any], Any]]
    checks = {name: functools.partial(check_hyperparameter, name) for name in names}
    if scheduled:
        checks["learning_rate"] = check_rate_or_schedule

    def declare_numbers(make: Callable[..., Optimizer]) -> Callable[..., Optimizer]:
        signature = inspect.signature(make)
        made = functools.cache(make)

        def make_with_numbers(*settings: Any) -> Optimizer:
            given = signature.bind(*settings).arguments
            several = {name: given[name] for name in names if isinstance(given[name], tuple)}
            if several:
                first = {name: values[0] for name, values in several.items()}
                return make_with_numbers(*(given | first).values()).with_several(several)
            numbers = {name: given[name] for name in names if _is_data(given[name])}
            traced = any(isinstance(number, jax.Array) for number in numbers.values())
            optimizer = (make if traced else made)(*settings)
            optimizer.hyperparameters = numbers
            optimizer._remake = lambda values: make_with_numbers(*(given | dict(values)).values())
            return optimizer

        @functools.wraps(make)
        def make_checked(*settings: Any, **further: Any) -> Optimizer:
            given = signature.bind(*settings, **further).arguments
            checked = {name: check(given[name]) for name, check in checks.items()}
            return make_with_numbers(*(given | checked).values())

        return make_checked

    return declare_numbers


def example_of(numbers: dict[str, Any]) -> dict[str, float]:
    """Placeholders for the numbers, for what does not depend on their values."""
    return dict.fromkeys(numbers, _EXAMPLE)


def _is_data(value: Any) -> bool:
    return isinstance(value, float | jax.Array) and not is_zero(value)
