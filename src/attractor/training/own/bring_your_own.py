"""Anybody's optimizer: by name, from a module, or as an object."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import jax
import numpy as np
import optax

from attractor.attention import Parameterization, get_parameterization
from attractor.geometry.loading import (
    IN_MODULE,
    NEEDS_TORCH,
    load_geometry as load_geometry,
    named_in_module,
    raised_by_user,
)
from attractor.support.checks import check_number, check_text
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.support.randomness import seeded
from attractor.training import Optimizer, declare, with_rescaled_state
from attractor.training.optimizers import named_optimizer as named_optimizer
from attractor.training.optimizers.homogeneity import By, find_homogeneity
from attractor.training.optimizers.optimizer import UNNAMED
from attractor.training.optimizers.schedules import Schedule
from attractor.training.optimizers.table import DEFAULT_LEARNING_RATE
from attractor.training.own.bridges import ForeignOptimizer, bridge
from attractor.training.own.method import Method, gradients_of
from attractor.training.own.probe import probe

_RATES = ("learning_rate", "lr")
"""What the learning rate of a factory may be called."""
_IN_WORDS = {
    "entry": "exact at every magnitude, in units that follow each entry",
    "tree": "exact at every magnitude, in units that follow the gradient",
}
_MADE = "an optimizer that is made"
_TRUE = "true magnitudes, which end where floating point does, at e^-745"


def load_method(
    spelling: str,
    *,
    learning_rate: float | None = None,
    parameterization: str | Parameterization = "W",
) -> Method:
    """A row from an optimizer's name, or from ``module:factory``.

    The factory is called without arguments, or with a learning rate alone, and returns an optax
    transformation or an ``Optimizer``, as the functions of optax do; or it takes parameters and
    returns a ``torch.optim.Optimizer`` for them, as the classes of ``torch.optim`` do. Modules are
    looked for in the current folder as well.

    Args:
        spelling: A name that ``get_optimizer`` knows, with its settings, or ``module:factory``.
        learning_rate: Default: that in the name or of the factory, or 0.1. A factory is given it as
            ``learning_rate`` or ``lr``, whichever it takes.
        parameterization: What is trained.

    Raises:
        InvalidInputError: If there is no such optimizer, its module or factory raises, or it
            returns something else.
    """
    spelling = check_text("spelling", spelling)
    layer = get_parameterization(parameterization)
    if learning_rate is not None:
        learning_rate = check_number("learning_rate", learning_rate, above=0.0, example=0.1)
    found = IN_MODULE.fullmatch(spelling)
    factory: Callable[..., Any] | None = None
    if not found:
        optimizer = named_optimizer(spelling, learning_rate)
        method = Method(spelling, optimizer, layer, reads=gradients_of(optimizer))
        step_size = optimizer.settings.get("learning_rate")
    else:
        factory, step_size = _with_rate(
            _imported("optimizer", *found.groups()), spelling, learning_rate
        )
        made = _call(factory, spelling)
        if isinstance(made, Optimizer) and made.name == UNNAMED:
            made.name = spelling
        method = as_method(made, spelling, layer)
    if step_size is None:
        return method

    def another(step_size: float | Schedule) -> Method | None:
        if not isinstance(step_size, Schedule):
            made = load_method(spelling, learning_rate=step_size, parameterization=layer)
        elif factory is None:
            made = replace(method, optimizer=named_optimizer(spelling, step_size))
        else:
            made = _with_schedule(factory, step_size, spelling, layer)
        return made and replace(made, probe=method.probe)  # tried once, at one step size

    return replace(method, step_size=float(step_size), with_step_size=another)


@seeded(purpose=_MADE)
def _with_schedule(
    factory: Callable[..., Any], schedule: Schedule, name: str, layer: Parameterization
) -> Method | None:
    """The row of a factory whose learning rate follows a schedule; None where it takes none."""
    argument = _rate_argument(factory)
    assert argument is not None
    try:
        made = functools.partial(factory, **{argument: schedule})()
        return as_method(made, name, layer)
    except Exception:  # a user's factory may take numbers alone, and then raise anything
        return None


def as_method(optimizer: Any, name: str, parameterization: str | Parameterization = "W") -> Method:
    """A row from an optax transformation, an ``Optimizer``, or a ``TorchOptimizer``.

    What is not an ``Optimizer`` already is tried on random gradients and on the same times powers
    of four. If state and updates scale with the gradient, it runs in units that follow it
    (``with_rescaled_state``), and is exact however small gradients become. If not, as with a
    constant such as eps, it is given true magnitudes.

    Args:
        optimizer: The optimizer.
        name: What to call it.
        parameterization: What it trains.

    Raises:
        InvalidInputError: If it is none of these, or raises when it is tried.
    """
    name = check_text("name", name)
    layer = get_parameterization(parameterization)
    if isinstance(optimizer, Optimizer):
        return _row(name, optimizer, layer, gradients_of(optimizer))
    if isinstance(optimizer, optax.GradientTransformation):
        adapted, reads = _adapt(optimizer, name, layer)
        return _row(name, adapted, layer, reads)
    if "torch" in sys.modules and isinstance(optimizer, bridge("torch").TorchOptimizer):
        return _row(name, optimizer, layer, optimizer.reads)
    raise InvalidInputError(
        "optimizer",
        f"{name} is a {type(optimizer).__name__}",
        "Give an optax transformation, an Optimizer, or a factory of a torch.optim.Optimizer",
    )


def _row(
    name: str, optimizer: Optimizer | ForeignOptimizer, layer: Parameterization, reads: str
) -> Method:
    """A row that is tried at tiny gradients once that is asked."""
    tried = functools.cache(lambda: probe(optimizer, layer))
    return Method(name, optimizer, layer, reads=reads, probe=tried)


def _with_rate(
    factory: Callable[..., Any], name: str, rate: float | None
) -> tuple[Callable[..., Any], float | None]:
    """A factory that is given a learning rate, and the rate; its own, where none is asked for."""
    argument = _rate_argument(factory)
    if argument is None:
        if rate is not None:
            raise InvalidInputError(
                "learning_rate",
                f"{name} takes none, neither as learning_rate nor as lr",
                "Leave it out, and set it in the factory",
            )
        return factory, None
    default = inspect.signature(factory).parameters[argument].default
    if rate is None:
        if default is not inspect.Parameter.empty:
            known = isinstance(default, int | float) and not isinstance(default, bool)
            return factory, float(default) if known else None
        rate = DEFAULT_LEARNING_RATE
    return functools.partial(factory, **{argument: rate}), rate


def _rate_argument(factory: Callable[..., Any]) -> str | None:
    """What a factory calls its learning rate; None if it takes none."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # compiled code has no signature
        return None
    return next((one for one in _RATES if one in parameters), None)


def _imported(argument: str, module: str, factory: str) -> Callable[..., Any]:
    """The function of that name in a module."""
    made = named_in_module(argument, module, factory)
    if not callable(made):
        raise InvalidInputError(
            argument,
            f"{module}:{factory} is a {type(made).__name__}, which cannot be called",
            "Give a function that returns an optimizer",
        )
    return made


@seeded(purpose=_MADE)
def _call(factory: Callable[..., Any], name: str) -> Any:
    """The optimizer that a factory makes, which may be one that needs torch parameters."""
    count = _required(factory)
    if count > 1:
        raise InvalidInputError(
            "optimizer",
            f"{name} needs {count} arguments",
            "Give a function without arguments, of a learning rate, or of torch parameters alone",
        )
    if count == 1:
        return _torch(factory, name)
    try:
        return factory()
    except Exception as error:  # a user's factory can raise anything
        raise raised_by_user("optimizer", name, error) from error


def _required(factory: Callable[..., Any]) -> int:
    """Number of arguments that a call cannot do without."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # compiled code has no signature
        return 0
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return sum(one.default is one.empty and one.kind not in variable for one in parameters)


def _torch(factory: Callable[..., Any], name: str) -> Any:
    """A factory of one argument is one of a torch optimizer, if torch is there."""
    try:
        torch = bridge("torch")
    except ImportError as error:
        raise InvalidInputError(
            "optimizer",
            f"{name} takes an argument, as factories of torch optimizers do, but PyTorch is not "
            "installed",
            f"{NEEDS_TORCH}, or give a function without arguments",
        ) from error
    return torch.TorchOptimizer.tried(factory, name)


@seeded(purpose=_MADE)
def _adapt(
    transformation: optax.GradientTransformation, name: str, layer: Parameterization
) -> tuple[Optimizer, str]:
    """The transformation with gradients as it can read them, and how that is."""
    extended = optax.with_extra_args_support(transformation)
    with double_precision():
        shape = layer.initial(jax.random.key(0), 4, 3)
        _try(extended, shape, name)
        for by in ("entry", "tree"):
            try:
                find_homogeneity(extended, shape, cast(By, by))
            except InvalidInputError:
                continue
            rescaled = with_rescaled_state(transformation, geometry=None, by=by, name=name)
            return rescaled, _IN_WORDS[by]
    return declare(transformation, geometry=None, name=name), _TRUE


def _try(transformation: optax.GradientTransformationExtraArgs, parameters: Any, name: str) -> None:
    """Takes one step, so that what cannot train says so before anything is trained."""
    gradient = jax.tree.map(lambda leaf: jax.numpy.ones_like(leaf), parameters)
    try:
        state = transformation.init(parameters)
        updates, after = jax.jit(transformation.update)(gradient, state, parameters)
    except Exception as error:  # a user's transformation can raise anything
        raise raised_by_user("optimizer", name, error) from error
    (structure, shapes), (after_structure, after_shapes) = _shapes(state), _shapes(after)
    if structure != after_structure or shapes != after_shapes:
        changed = shapes != after_shapes
        what = f"arrays of {shapes} at first, and of {after_shapes}" if changed else "another"
        raise InvalidInputError(
            "optimizer",
            f"the state of {name} is {what} after a step",
            "Return a state of the same structure, with arrays of the same shapes",
        )
    _, shapes = found = _shapes(updates)
    if found != _shapes(parameters):
        raise InvalidInputError(
            "optimizer",
            f"the updates of {name} have the shapes {shapes}",
            "Return updates like the gradient",
        )


def _shapes(state: Any) -> tuple[Any, list[tuple[int, ...]]]:
    return jax.tree.structure(state), [np.shape(leaf) for leaf in jax.tree.leaves(state)]
