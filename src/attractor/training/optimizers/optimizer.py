"""Optimizers: optax transformations that also say which geometry they descend."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from attractor.attention.parameterization import KeyQuery, Parameterization
from attractor.attention.scaled import (
    Scaled,
    add_multiple,
    direction,
    entry_directions,
    leaf_directions,
    magnitude,
)
from attractor.geometry import Frobenius, Geometry, Schatten, Spectral, get_geometry
from attractor.support.checks import check_choice, check_function, check_kinds, check_text, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_plain
from attractor.support.settings import with_own_settings
from attractor.training.optimizers.checks import check_one_hyperparameter, refuse_several
from attractor.training.optimizers.hyperparameters import (
    Number,
    Numbers,
    example_of,
    hyperparameters as as_data,
    is_zero,
)
from attractor.training.optimizers.plain_arrays import Takes, on_plain_arrays
from attractor.training.optimizers.schedules import Schedule

GradientScale = Literal[
    "absolute", "global", "per_array", "per_entry", "log_per_array", "log_per_entry"
]

_READERS: dict[GradientScale, Callable[[PyTree], PyTree]] = {
    "absolute": magnitude,
    "global": direction,
    "per_array": leaf_directions,
    "per_entry": entry_directions,
    "log_per_array": lambda gradient: gradient,
    "log_per_entry": lambda gradient: gradient,
}

SINGULAR_POWERS = (Schatten(1.5), Spectral())
"""Norms whose steps are powers of singular values, which are found for many matrices at once."""

UNNAMED = "declared by the user"
"""The name of what was given none."""


class Optimizer(optax.GradientTransformationExtraArgs):
    """An optax transformation that declares the geometry it descends in its own parameters.

    It is a pair of pure functions like any other and works wherever optax's own do. Every number
    that one is made of, such as a learning rate or a weight decay, may be several values, which
    ``train`` runs side by side, or a function of the number of steps taken before: ``power_decay``,
    ``until``, a schedule of optax, or any other that JAX can trace.

    Attributes:
        geometry: The norm whose steepest descent it is, or None where no such norm is known.
        gradient_scale: The scale of the gradients it takes. ``"absolute"``: the true values, which
            underflow where floating point ends. ``"global"``: the values up to one positive factor;
            ``"per_array"``: up to a factor for each array; ``"per_entry"``: up to a factor for each
            entry. ``"log_per_array"``: every array as mantissa and log scale;
            ``"log_per_entry"``: every entry so.
        name: Its name in tables and plots.
        settings: Its settings by name.
        hyperparameters: Those of its settings that are numbers other than zero: training takes
            them as data, and compiles nothing for other values. Where several were given, a tuple.
        retract: Returns the parameters from the optimizer's memory, where they are kept there more
            exactly than as a sum of updates.
        log_time_step: The logarithm of the time that a step amounts to for the same algorithm
            without normalization, from a scaled gradient and the further arguments of ``update``;
            NaN where several arrays are normalized each by itself, which is no change of time.
            None where it never is one, and where hyperparameters change: see ``at_step``.
        weight_decay: Multiple of the parameters that is added to the gradient first; a function of
            the step where it changes.
        needs: Names of the further arguments ``update`` takes, such as ``"log_excess"``, the
            logarithm of the loss above the best one that can be reached, or
            ``"matrix_gradient"``, the gradient in the attention matrix W.
        steps_by_array: Whether every array takes a step of its own length, so that several of them
            descend the largest of their norms rather than one norm of all.
        joins_heads: Whether the arrays of all attention heads are one for it; see ``joined``.
        of_singular_values: Whether most of a step is powers of singular values, which are found
            for many trials side by side.
        of_factors: Whether keys and queries are what it trains, and nothing else.
        matrix_geometry: The norm of their product W whose steepest descent it is, or None where
            that follows from ``geometry``, or no such norm is known.

    In a loop of one's own, half-precision parameters are computed with in single precision, in
    which memories are kept; integers and complex numbers are refused. What was declared sees arrays
    as they come.
    """

    geometry: Geometry | None
    gradient_scale: GradientScale
    name: str
    settings: dict[str, Any]
    hyperparameters: dict[str, Any]
    retract: Callable[[PyTree, PyTree], PyTree] | None
    log_time_step: Callable[..., Float[Array, ""]] | None
    weight_decay: Number
    needs: frozenset[str]
    steps_by_array: bool
    joins_heads: bool
    of_singular_values: bool
    of_factors: bool
    matrix_geometry: Geometry | None
    _remake: Callable[[Mapping[str, Any]], Optimizer]
    _undecayed: Callable[..., tuple[PyTree, PyTree]]

    def __new__(
        cls,
        init: Any,
        update: Any,
        *,
        geometry: Geometry | None,
        gradient_scale: GradientScale,
        name: str,
        settings: dict[str, Any],
        retract: Callable[[PyTree, PyTree], PyTree] | None = None,
        log_time_step: Callable[..., Float[Array, ""]] | None = None,
        weight_decay: Number = 0.0,
        needs: frozenset[str] = frozenset(),
        steps_by_array: bool | None = None,
        of_singular_values: bool = False,
        of_factors: bool = False,
        matrix_geometry: Geometry | None = None,
        takes: Takes = "single",
    ) -> Optimizer:
        """Joins the pair of functions with what they declare."""
        pair = on_plain_arrays(takes, init, _with_decay(update, weight_decay))
        optimizer = super().__new__(cls, *map(with_own_settings, pair))
        optimizer._undecayed = update
        optimizer.geometry = geometry
        optimizer.gradient_scale = gradient_scale
        optimizer.name = name
        decay = {} if is_zero(weight_decay) else {"weight_decay": weight_decay}
        optimizer.settings = settings | decay
        optimizer.hyperparameters = {}
        optimizer._remake = lambda values: optimizer
        optimizer.retract = retract
        optimizer.log_time_step = log_time_step
        optimizer.weight_decay = weight_decay
        optimizer.needs = needs
        if steps_by_array is None:  # those that take singular values decompose every array
            of_values = isinstance(geometry, Schatten) and geometry != Frobenius()
            steps_by_array = gradient_scale == "per_array" or of_values
        optimizer.steps_by_array = steps_by_array
        optimizer.joins_heads = False
        optimizer.of_singular_values = of_singular_values
        optimizer.of_factors = of_factors
        optimizer.matrix_geometry = matrix_geometry
        return optimizer

    @property
    def declared(self) -> dict[str, Any]:
        """What another optimizer made of this one declares as well."""
        names = (
            *("geometry", "gradient_scale", "name", "needs", "steps_by_array"),
            *("of_singular_values", "of_factors", "matrix_geometry"),
        )
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}({settings})"

    @property
    def example(self) -> Optimizer:
        """The same algorithm with placeholders for its numbers: one object for all values."""
        return self.with_numbers(example_of(self.hyperparameters))

    def with_numbers(self, values: Mapping[str, Any]) -> Optimizer:
        """The same algorithm with other values of its hyperparameters, traced ones perhaps."""
        return self._remake(values)

    def with_several(self, values: Mapping[str, tuple[float, ...]]) -> Optimizer:
        """The same algorithm with several values of some of its hyperparameters, for ``train``."""

        def refuse(*given: Any, **further: Any) -> None:
            refuse_several(*next(iter(values.items())))

        several = Optimizer(
            refuse,
            refuse,
            takes="any",
            settings=self.settings | {name: list(each) for name, each in values.items()},
            retract=self.retract,
            log_time_step=self.log_time_step,
            **self.declared,
        )
        several.joins_heads = self.joins_heads
        several.hyperparameters = self.hyperparameters | dict(values)
        several._remake = self._remake
        return several

    @property
    def axes(self) -> dict[str, tuple[float, ...]]:
        """The hyperparameters that have several values, which ``train`` runs side by side."""
        return {
            name: value for name, value in self.hyperparameters.items() if isinstance(value, tuple)
        }

    @property
    def variants(self) -> list[dict[str, float]]:
        """All combinations of the values of hyperparameters; the last one changes fastest."""
        several = {
            name: value if isinstance(value, tuple) else (value,)
            for name, value in self.hyperparameters.items()
        }
        return [
            dict(zip(several, values, strict=True))
            for values in itertools.product(*several.values())
        ]

    def numbers(
        self, which: Int[np.ndarray, "trial"], dtype: Any
    ) -> dict[str, Float[np.ndarray, "trial"]]:
        """The hyperparameters of trials, given which variant each is of."""
        variants = self.variants
        return {
            name: np.array([as_plain(name, one[name]) for one in variants], dtype)[which]
            for name in self.hyperparameters
        }

    @property
    def decays_weights(self) -> bool:
        """Whether a multiple of the parameters is added to the gradient."""
        return not is_zero(self.weight_decay)

    @property
    def by_entry(self) -> bool:
        """Whether every entry of the gradient has a scale of its own for it."""
        return self.gradient_scale in ("per_entry", "log_per_entry")

    def effective_geometry(self, parameterization: Parameterization) -> Geometry | None:
        """The norm of W that it descends in the parameters of a parameterization, if known.

        Raises:
            InvalidInputError: If it cannot train them.
        """
        factors = isinstance(parameterization, KeyQuery)
        if self.of_factors and not factors:
            raise InvalidInputError(
                "parameterization",
                f"{self.name} trains keys and queries, with the head fixed, not "
                f"{parameterization.name!r}",
                "Give 'KQ', or KeyQuery(width)",
            )
        return parameterization.descended(self)

    def read(self, gradient: PyTree[Scaled]) -> PyTree:
        """Turns a scaled gradient into what ``update`` takes."""
        return _READERS[self.gradient_scale](gradient)

    def step(
        self, gradient: PyTree[Scaled], memory: PyTree, parameters: PyTree, **further: Any
    ) -> tuple[PyTree, PyTree]:
        """Takes one step at a gradient of any magnitude; returns parameters and memory."""
        if self.decays_weights:
            gradient = add_multiple(gradient, self.weight_decay, parameters)
        updates, memory = self._undecayed(self.read(gradient), memory, parameters, **further)
        if self.retract is None:
            return optax.apply_updates(parameters, updates), memory
        return self.retract(parameters, memory), memory

    def at_step(self, memory: PyTree) -> Optimizer:
        """The optimizer of the next step: itself, but for hyperparameters that change."""
        return self

    def at_rest(self, memory: PyTree, before: PyTree) -> Bool[Array, ""]:
        """Whether the memory is as it was, so that the same gradient would move nothing again."""
        rests = jnp.array(True)
        for new, old in zip(jax.tree.leaves(memory), jax.tree.leaves(before), strict=True):
            rests &= (new == old).all()
        return rests


def declare(
    transformation: optax.GradientTransformation | Callable[..., optax.GradientTransformation],
    *,
    geometry: Geometry | str | None,
    gradient_scale: GradientScale = "absolute",
    name: str = UNNAMED,
    settings: dict[str, Any] | None = None,
    weight_decay: Numbers = 0.0,
    hyperparameters: Mapping[str, Numbers] | None = None,
) -> Optimizer:
    """Declares which geometry an optax transformation descends.

    Also puts back what ``optax.chain`` loses of a declaration. The numbers within a transformation
    are constants of the program that is compiled. To have them as data of a trial, give the
    function that makes it, and the numbers by name:

        declare(optax.sgd, hyperparameters={"learning_rate": [0.1, 0.2]}, geometry="frobenius")

    Schedules among them are computed in the precision of the run. One within a transformation is
    computed by optax, many of them in single precision, as optax counts steps in ``int32``.

    Args:
        transformation: Any optax transformation, ``optax.sgd(0.1)`` for instance; with
            ``hyperparameters`` a function of these that returns one, which works with traced
            numbers. The same function object is compiled once for all values but zero, which
            it is given as a plain number.
        geometry: The norm whose steepest descent it is, or its name; None if none is known.
        gradient_scale: ``"absolute"`` gives it true gradients, which underflow to zero where
            floating point ends; ``"global"`` gives them up to a positive factor and is right for
            transformations that normalize, and for those alone. ``"per_array"`` and
            ``"per_entry"`` are for those that normalize each array or each entry by itself.
        name: What tables and plots call it; default: the name of the function that makes it, where
            that is known, as it is not of optax's own.
        settings: Hyperparameters to keep with the results.
        weight_decay: Multiple of the parameters to add to the gradient before anything else, and
            without loss where either is tiny.
        hyperparameters: Numbers to make the transformation of, by name, each one value or several
            that ``train`` runs side by side; they are kept with the results in place of settings.

    Raises:
        InvalidInputError: If an argument is of the wrong kind.

    Example:
        >>> import optax
        >>> import attractor as at
        >>> optimizer = at.declare(optax.sgd(0.1), geometry="frobenius", name="SGD")
        >>> optimizer.name, optimizer.geometry
        ('SGD', Frobenius())
    """
    name = check_text("name", name)
    check_kinds(settings=(settings, Mapping | None))
    if name == UNNAMED:
        name = _own_name(transformation)
    if hyperparameters is not None:
        given = _check_own_numbers(transformation, settings, hyperparameters, weight_decay)
        norm = None if geometry is None else get_geometry(geometry)
        make = _maker(transformation, tuple(given), norm, gradient_scale, name)
        return make(*given.values(), weight_decay)
    if not isinstance(transformation, optax.GradientTransformation):
        raise InvalidInputError(
            "transformation",
            f"{type(transformation).__name__} is not an optax gradient transformation",
            "Give one, such as optax.sgd(0.1)",
        )
    geometry = None if geometry is None else get_geometry(geometry)
    check_choice("gradient_scale", gradient_scale, get_args(GradientScale))
    extended = optax.with_extra_args_support(transformation)
    return Optimizer(
        extended.init,
        extended.update,
        geometry=geometry,
        gradient_scale=gradient_scale,
        name=name,
        settings=settings or {},
        weight_decay=check_one_hyperparameter("weight_decay", weight_decay),
        takes="any",
    )


def _own_name(transformation: Any) -> str:
    """The name of a factory, or of the function that a transformation was made in."""
    if not isinstance(transformation, optax.GradientTransformation):
        return getattr(transformation, "__name__", UNNAMED)
    update = transformation.update
    *makers, _ = getattr(update, "__qualname__", "update").split(".<locals>.")
    # Those of optax are chains, all of one name, or of functions that have their own.
    known = makers and not update.__module__.startswith("optax.")
    return makers[-1].rpartition(".")[2] if known else UNNAMED


def _check_own_numbers(
    make: Any, settings: Any, given: Any, weight_decay: Any
) -> dict[str, Numbers]:
    """Checks what ``declare`` is given to make a transformation of."""
    # They import this file.
    from attractor.training.initial import INITIAL_SCALE
    from attractor.training.trajectory import RECORDED

    names = list(given) if isinstance(given, Mapping) else []
    if not names or not all(isinstance(n, str) and n.isidentifier() for n in names):
        raise InvalidInputError(
            "hyperparameters",
            f"{shown(given)} names no numbers",
            'Give {"learning_rate": 0.1}, say',
        )
    remedy = "With hyperparameters, give the function that makes it of them, such as optax.sgd"
    check_function("transformation", make, remedy)
    if settings:
        raise InvalidInputError(
            "settings", "hyperparameters are given, which are kept in their place", "Leave it out"
        )
    taken = {"weight_decay", INITIAL_SCALE, *RECORDED}
    for name, value in {**given, "weight_decay": weight_decay}.items():
        if isinstance(value, Schedule):
            taken |= {*value.names(name)} - {name}
    if taken := taken & {*names}:
        raise InvalidInputError(
            "hyperparameters",
            f"{taken.pop()!r} is the name of something else",
            "Give the number another name, by a function of your own",
        )
    return dict(given)


@functools.cache
def _maker(
    factory: Callable[..., Any],
    names: tuple[str, ...],
    geometry: Geometry | None,
    gradient_scale: GradientScale,
    name: str,
) -> Callable[..., Optimizer]:
    """The function of hyperparameters that declares what a factory makes: one object for each."""

    def make(*values: Any) -> Optimizer:
        *own, weight_decay = values
        settings = dict(zip(names, own, strict=True))
        try:
            transformation = factory(**settings)
        except TypeError as error:
            raise InvalidInputError(
                "hyperparameters",
                f"the function cannot be called with {', '.join(names)}: {error}",
                "Give the numbers that it takes, by their names",
            ) from error
        return declare(
            transformation, geometry=geometry, gradient_scale=gradient_scale, name=name,
            settings=settings, weight_decay=weight_decay,
        )  # fmt: skip

    numbers = (*names, "weight_decay")
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(number, kind) for number in numbers]
    make.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return as_data(*numbers)(make)


def _with_decay(update: Any, weight_decay: Number) -> Any:
    """Adds weight decay to plain gradients, for loops that call ``update`` themselves."""
    if is_zero(weight_decay):
        return update

    def decayed(
        updates: PyTree, state: PyTree, params: PyTree | None = None, **further: Any
    ) -> tuple[PyTree, PyTree]:
        if params is None:
            raise InvalidInputError(
                "params", "weight decay needs them", "Call update(gradient, state, params)"
            )
        total = jax.tree.map(lambda slope, leaf: slope + weight_decay * leaf, updates, params)
        return update(total, state, params, **further)

    return decayed
