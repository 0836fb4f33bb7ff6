"""Hyperparameters as data: optimizers that differ in their numbers alone are compiled once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float

if TYPE_CHECKING:
    from attractor.training.optimizers.optimizer import Optimizer

Number: TypeAlias = float | Float[Array, ""]
"""A hyperparameter, which may be traced."""
Numbers: TypeAlias = float | Sequence[float] | np.ndarray | Float[Array, ""]
"""One value of a hyperparameter, or several, which ``train`` runs side by side."""

_EXAMPLE = 0.5
"""A value that any hyperparameter may have."""

_Factory = TypeVar("_Factory", bound=Callable[..., Any])


def is_zero(number: Any) -> bool:
    """Whether a number is known to be zero, so that the term it multiplies is left out.

    Of a traced number nothing is known; no traced hyperparameter is zero.
    """
    return not isinstance(number, jax.Array) and number == 0


def hyperparameters(*names: str) -> Callable[[_Factory], _Factory]:
    """Says which arguments of a function that makes an optimizer are numbers, not structure.

    Training takes these numbers as data of each trial, so that a second learning rate compiles
    nothing. The function has to work with traced numbers, too. Zero is structure: the term it
    multiplies is not compiled. So is whatever is no number, such as a schedule.

    Of a number there may be several values, in a tuple. The same settings give the same object, for
    loops of one's own where optimizers are static arguments.

    Args:
        names: The arguments, all of them positional.
    """

    def declare_numbers(make: _Factory) -> _Factory:
        arguments = tuple(inspect.signature(make).parameters)
        made = functools.cache(make)

        @functools.wraps(make)
        def make_with_numbers(*settings: Any) -> Optimizer:
            given = dict(zip(arguments, settings, strict=True))
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

        return make_with_numbers  # pyright: ignore[reportReturnType]

    return declare_numbers


def example_of(numbers: dict[str, Any]) -> dict[str, float]:
    """Values that stand for any: what does not depend on the numbers is found from these."""
    return dict.fromkeys(numbers, _EXAMPLE)


def _is_data(value: Any) -> bool:
    return isinstance(value, float | jax.Array) and not is_zero(value)
