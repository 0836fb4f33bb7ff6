"""Anybody's optimizer as a row of the matrix: by name, from a module, or as an object."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable
from typing import Any, cast

import jax
import numpy as np
import optax

from attractor.analysis.bias._bias_matrix import bias_matrix
from attractor.analysis.bias.methods import Method, gradients_of
from attractor.analysis.bias.result import BiasMatrix
from attractor.attention import Head, Parameterization, get_parameterization
from attractor.checks import check_flags, check_text
from attractor.errors import InvalidInputError
from attractor.precision import double_precision
from attractor.tokens import Tokens
from attractor.training import Optimizer, declare, with_rescaled_state
from attractor.training.optimizers import named_optimizer as named_optimizer
from attractor.training.optimizers.homogeneity import By, find_homogeneity

_FACTORY = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
_IN_WORDS = {
    "entry": "exact at every magnitude, in units that follow each entry",
    "tree": "exact at every magnitude, in units that follow the gradient",
}
_TRUE = "true magnitudes, which end where floating point does, at e^-745"


def load_method(
    spelling: str,
    *,
    learning_rate: float | None = None,
    parameterization: str | Parameterization = "W",
) -> Method:
    """A row from an optimizer's name, or from ``module:factory``.

    The factory is called without arguments and returns an optax transformation or an
    ``Optimizer``; or it takes parameters and returns a ``torch.optim.Optimizer`` for them, as the
    classes of ``torch.optim`` do. Modules are looked for in the current folder as well.

    Args:
        spelling: A name that ``get_optimizer`` knows, with its settings, or ``module:factory``.
        learning_rate: For optimizers with a name; default: that in the name, or 0.1. A factory
            sets its own.
        parameterization: What is trained.

    Raises:
        InvalidInputError: If there is no such optimizer, its module or factory raises, or it
            returns something else.
    """
    spelling = check_text("spelling", spelling)
    layer = get_parameterization(parameterization)
    found = _FACTORY.fullmatch(spelling)
    if not found:
        optimizer = named_optimizer(spelling, learning_rate)
        return Method(spelling, optimizer, layer, reads=gradients_of(optimizer))
    if learning_rate is not None:
        raise InvalidInputError(
            "learning_rate",
            f"{spelling} is a factory, which sets its own",
            "Leave it out, and set it in the factory",
        )
    return as_method(_call(_imported(*found.groups()), spelling), spelling, layer)


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
        return Method(name, optimizer, layer, reads=gradients_of(optimizer))
    if isinstance(optimizer, optax.GradientTransformation):
        adapted, reads = _adapt(optimizer, name, layer)
        return Method(name, adapted, layer, reads=reads)
    if "torch" in sys.modules:
        from attractor.torch import TorchOptimizer

        if isinstance(optimizer, TorchOptimizer):
            return Method(name, optimizer, layer, reads=optimizer.reads)
    raise InvalidInputError(
        "optimizer",
        f"{name} is a {type(optimizer).__name__}",
        "Give an optax transformation, an Optimizer, or a factory of a torch.optim.Optimizer",
    )


def _imported(module: str, factory: str) -> Callable[..., Any]:
    """The function of that name in a module, which may lie in the current folder."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except Exception as error:  # a user's module can raise anything
        raise InvalidInputError(
            "optimizer",
            f"the module {module!r} cannot be imported: {type(error).__name__}: {error}",
            f"Give module:factory, with the module installed or in {folder}",
        ) from error
    finally:
        sys.path.remove(folder)
    made = getattr(found, factory, None)
    if made is None:
        names = [name for name, value in vars(found).items() if callable(value)]
        public = ", ".join(sorted(name for name in names if not name.startswith("_"))[:10])
        raise InvalidInputError(
            "optimizer", f"{module!r} has no {factory!r}", f"It has: {public or 'no functions'}"
        )
    if not callable(made):
        raise InvalidInputError(
            "optimizer",
            f"{module}:{factory} is a {type(made).__name__}, which cannot be called",
            "Give a function that returns an optimizer",
        )
    return made


def _call(factory: Callable[..., Any], name: str) -> Any:
    """The optimizer that a factory makes, which may be one that needs torch parameters."""
    count = _required(factory)
    if count > 1:
        raise InvalidInputError(
            "optimizer",
            f"{name} needs {count} arguments",
            "Give a function without arguments, or of torch parameters alone",
        )
    if count == 1:
        return _torch(factory, name)
    try:
        return factory()
    except Exception as error:  # a user's factory can raise anything
        raise _raised(name, error) from error


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
        from attractor.torch import TorchOptimizer
    except ImportError as error:
        raise InvalidInputError(
            "optimizer",
            f"{name} takes an argument, as factories of torch optimizers do, but PyTorch is not "
            "installed",
            "Install attractor[torch], or give a function without arguments",
        ) from error
    return TorchOptimizer.tried(factory, name)


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
        updates, _ = jax.jit(transformation.update)(
            gradient, transformation.init(parameters), parameters
        )
    except Exception as error:  # a user's transformation can raise anything
        raise _raised(name, error) from error
    same = jax.tree.structure(updates) == jax.tree.structure(parameters)
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(updates)]
    if not same or shapes != [np.shape(leaf) for leaf in jax.tree.leaves(parameters)]:
        raise InvalidInputError(
            "optimizer",
            f"the updates of {name} have the shapes {shapes}",
            "Return updates like the gradient",
        )


def _raised(name: str, error: Exception) -> InvalidInputError:
    text = str(error).strip().split("\n")[0][:300]
    return InvalidInputError(
        "optimizer",
        f"{name} raised {type(error).__name__}: {text}",
        "Mend it, and try it alone first",
    )


def which_norm(
    tokens: Tokens,
    head: Head,
    optimizer: Any,
    *,
    parameterization: str | Parameterization = "W",
    steps: int = 6000,
    seed: int = 0,
    matched: bool = False,
    progress: bool = False,
) -> BiasMatrix:
    """Finds which norm's margin an optimizer maximizes.

    Prints as the matrix of one row with the answer below; ``.answer(method)`` is that answer,
    and the rules it follows are described at ``attractor.analysis.bias.answer.answer``.

    Args:
        tokens: Data sets with labels, along an axis of instances; eight or more for an answer.
        head: The fixed head.
        optimizer: An optax transformation, an ``Optimizer``, or a ``TorchOptimizer``.
        parameterization: What it trains.
        steps: Number of steps.
        seed: Seed of the random initial weights.
        matched: Whether to start from a matrix that keeps the optimal tokens.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been trained then.
    """
    check_flags(matched=matched)
    name = getattr(optimizer, "name", "the optimizer")
    return bias_matrix(
        tokens,
        head,
        methods=[as_method(optimizer, name, parameterization)],
        steps=steps,
        seed=seed,
        matched=matched,
        progress=progress,
    )
