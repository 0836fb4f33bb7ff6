"""Optimizers made of optax's transformations: as they are, or with a state that is rescaled.

A state that is rescaled is exact where gradients leave the range of floating point.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from attractor.attention.gradients.conditional import cond_for_any
from attractor.attention.scaled import Scaled
from attractor.geometry import Geometry, get_geometry
from attractor.support.checks import check_choice, check_function, check_kinds, check_text, shown
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.checks import Number, check_one_hyperparameter
from attractor.training.optimizers.homogeneity import By, Homogeneity, find_homogeneity
from attractor.training.optimizers.hyperparameters import hyperparameters as as_data
from attractor.training.optimizers.leaves import as_scaled
from attractor.training.optimizers.optimizer import UNNAMED, GradientScale, Optimizer
from attractor.training.optimizers.schedules import Numbers, Schedule

_NOTHING = -(2**28)
"""The exponent of zero: below that of any number."""


class RescaledState(NamedTuple):
    """The state of a transformation, in units that follow its magnitude.

    Attributes:
        exponents: Numbers of degree k in the gradient are held in units of ``2^(k exponent)``.
            One for all, one for each array of the gradient, or one for each of its entries.
        memory: The state of the transformation, in these units.
    """

    exponents: tuple[Int[Array, "..."], ...]
    memory: PyTree


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


def with_rescaled_state(
    transformation: optax.GradientTransformation,
    *,
    geometry: Geometry | str | None,
    by: By = "tree",
    name: str = UNNAMED,
    settings: dict[str, Any] | None = None,
    weight_decay: Number = 0.0,
) -> Optimizer:
    """Makes a stateful optax transformation exact at every magnitude of the gradient.

    Momentum is of degree 1 in the gradient, its square of degree 2, a count of degree 0: all are
    held in units that follow the larger of gradient and memory, and change by powers of two. While
    the unit is one, which is as long as numbers stay within ``2^256`` of it, every bit is that
    of the transformation by itself. Updates of degree 0, as of Adam without eps, take their full
    length however small the gradient; those of degree 1, as of momentum, have their true
    magnitude, which may underflow. An entry of which no gradient was ever seen is left alone
    where the transformation would divide zero by zero.

    The degrees are found by trying the transformation (``find_homogeneity``).

    Args:
        transformation: Any optax transformation whose state and updates are homogeneous in the
            gradient: constants such as eps have to be zero.
        geometry: The norm whose steepest descent it is, or its name; None if none is known.
        by: What has a unit of its own: ``"tree"``, all parameters together; ``"leaf"``, each
            array, for those that treat arrays apart, as Muon does; ``"entry"``, each entry, for
            those that treat entries apart, as Adam does.
        name: What tables and plots call it.
        settings: Hyperparameters to keep with the results.
        weight_decay: Multiple of the parameters to add to the gradient before anything else.

    Raises:
        InvalidInputError: If an argument is of the wrong kind; when it first meets parameters,
            if it is not homogeneous.
    """
    check_choice("by", by, get_args(By))
    declared = declare(
        transformation,
        geometry=geometry,
        gradient_scale="log_per_entry" if by == "entry" else "log_per_array",
        name=name,
        settings=settings,
    )
    extended = optax.with_extra_args_support(transformation)

    @functools.lru_cache
    def homogeneity_of(structure: Any, kinds: tuple) -> Homogeneity:
        leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in kinds]
        return find_homogeneity(extended, structure.unflatten(leaves), by)

    def homogeneity(tree: PyTree) -> Homogeneity:
        leaves, structure = jax.tree.flatten(tree)
        return homogeneity_of(structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves))

    def init(params: PyTree) -> RescaledState:
        arrays = jax.tree.map(jnp.asarray, params)
        _example_of(optimizer).homogeneity(arrays)
        shapes = {
            "tree": [()],
            "leaf": [()] * len(jax.tree.leaves(arrays)),
            "entry": [leaf.shape for leaf in jax.tree.leaves(arrays)],
        }[by]
        exponents = tuple(jnp.zeros(shape, jnp.int32) for shape in shapes)
        return RescaledState(exponents, extended.init(params))

    def update(
        updates: PyTree, state: RescaledState, params: PyTree | None = None, **further: Any
    ) -> tuple[PyTree, RescaledState]:
        gradient, structure = jax.tree.flatten(as_scaled(updates))
        mantissas = [leaf.mantissa for leaf in gradient]
        log_scales = [leaf.log_scale for leaf in gradient]
        degrees = _example_of(optimizer).homogeneity(structure.unflatten(mantissas))
        groups = tuple(0 if by == "tree" else place for place in range(len(gradient)))
        scale = _FloatingScale(degrees, groups, by)
        memory, memory_structure = jax.tree.flatten(state.memory)
        exponents, memory, measured = _follow(scale, mantissas, log_scales, memory, state.exponents)
        steps, held = extended.update(
            structure.unflatten(measured), memory_structure.unflatten(memory), params, **further
        )
        finished = [
            _times_power(step, degrees.update * exponents[group])
            if degrees.update
            else jnp.where(jnp.isnan(step) & scale.inactive(gradient, memory, group), 0, step)
            for step, group in zip(jax.tree.leaves(steps), groups, strict=True)
        ]
        return structure.unflatten(finished), RescaledState(exponents, held)

    optimizer: Any = RescaledOptimizer(
        init,
        update,
        geometry=declared.geometry,
        gradient_scale=declared.gradient_scale,
        name=declared.name,
        settings=declared.settings,
        weight_decay=check_one_hyperparameter("weight_decay", weight_decay),
    )
    optimizer.homogeneity = homogeneity
    return optimizer


class RescaledOptimizer(Optimizer):
    """A stateful transformation whose state has a floating scale.

    Attributes:
        homogeneity: How it scales with gradients of the form of a tree.
    """

    homogeneity: Callable[[PyTree], Homogeneity]


def _example_of(optimizer: Optimizer) -> RescaledOptimizer:
    """That which the degrees are found from: they depend on no value of a hyperparameter."""
    example = optimizer.example
    assert isinstance(example, RescaledOptimizer)
    return example


class _FloatingScale(NamedTuple):
    """Units of a gradient and a memory, both as lists of arrays."""

    degrees: Homogeneity
    groups: tuple[int, ...]
    by: By

    def follow(
        self, gradient: list[Scaled], memory: list[Array], exponents: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], list[Array], list[Array]]:
        """Units that suit, and memory and gradient in them."""
        measured = self._measure(gradient, exponents)
        moves = tuple(
            self._leaves_range(gradient, measured, memory, group) for group in range(len(exponents))
        )

        def move(operand: tuple) -> tuple:
            memory, measured = operand
            new = tuple(
                jnp.where(flag, self._size(gradient, memory, old, group), old)
                for group, (flag, old) in enumerate(zip(moves, exponents, strict=True))
            )
            moved = list(memory)
            for place, degree, group in self._memories():
                factor = _power(degree * (exponents[group] - new[group]), memory[place].dtype)
                moved[place] = memory[place] * factor
            # Compiled apart, the same formula may round otherwise where nothing moves.
            again = [
                jnp.where(moves[group], fresh, leaf)
                for fresh, leaf, group in zip(
                    self._measure(gradient, new), measured, self.groups, strict=True
                )
            ]
            return new, moved, again

        return cond_for_any(
            jnp.stack([flag.any() for flag in moves]).any(),
            move,
            lambda operand: (exponents, *operand),
            (memory, measured),
        )

    def inactive(
        self, gradient: list[Scaled], memory: list[Array], group: int
    ) -> Bool[Array, "..."]:
        """Whether there is no gradient and never was one."""
        zeros = [leaf.mantissa == 0 for leaf, own in self._gradients(gradient) if own == group]
        zeros += [memory[place] == 0 for place, _, own in self._memories() if own == group]
        if self.by != "entry":
            zeros = [zero.all() for zero in zeros]
        return functools.reduce(jnp.logical_and, zeros)

    def _leaves_range(
        self, gradient: list[Scaled], measured: list[Array], memory: list[Array], group: int
    ) -> Bool[Array, "..."]:
        """Whether the largest number leaves the range where squares of numbers are safe."""
        sizes = [(leaf, 1) for leaf, own in self._gradients(measured) if own == group]
        sizes += [(memory[place], k) for place, k, own in self._memories() if own == group]
        high, low = [], []
        for leaf, degree in sizes:
            size = jnp.abs(leaf) if self.by == "entry" else jnp.abs(leaf).max()
            bound = 2.0 ** (degree * _reach(leaf.dtype))
            high.append(size > bound)
            low.append(size < 1 / bound)
        too_large = functools.reduce(jnp.logical_or, high)
        too_small = functools.reduce(jnp.logical_and, low)
        return too_large | (too_small & ~self.inactive(gradient, memory, group))

    def _size(
        self, gradient: list[Scaled], memory: list[Array], exponent: Array, group: int
    ) -> Int[Array, "..."]:
        """The exponent of the largest of gradient and memory, in units of degree one."""
        found = []
        for leaf, own in self._gradients(gradient):
            if own == group:
                shift = jnp.maximum(jnp.floor(leaf.log_scale / math.log(2)), _NOTHING)
                found.append(_exponent(leaf.mantissa) + shift.astype(jnp.int32))
        for place, degree, own in self._memories():
            if own == group:
                found.append(_exponent(memory[place]) // degree + exponent)
        if self.by != "entry":
            found = [size.max() for size in found]
        return functools.reduce(jnp.maximum, found)

    def _measure(self, gradient: list[Scaled], exponents: tuple[Array, ...]) -> list[Array]:
        return [_in_units(leaf, exponents[group]) for leaf, group in self._gradients(gradient)]

    def _gradients(self, leaves: list[Any]) -> Iterator[tuple[Any, int]]:
        return zip(leaves, self.groups, strict=True)

    def _memories(self) -> list[tuple[int, int, int]]:
        """Place, degree and group of every array of the memory that has a unit."""
        pairs = zip(self.degrees.degrees, self.degrees.groups, strict=True)
        return [(place, degree, own) for place, (degree, own) in enumerate(pairs) if degree]


# Compiled here, so that a loop that is not compiled does not compile the conditional every time.
@functools.partial(jax.jit, static_argnums=0)
def _follow(
    scale: _FloatingScale,
    mantissas: list[Array],
    log_scales: list[Array],
    memory: list[Array],
    exponents: tuple[Array, ...],
) -> tuple[tuple[Array, ...], list[Array], list[Array]]:
    gradient = [Scaled(*number) for number in zip(mantissas, log_scales, strict=True)]
    return scale.follow(gradient, memory, exponents)


def _reach(dtype: Any) -> int:
    """Largest exponent of two of a number whose square is safe."""
    return int(jnp.finfo(dtype).maxexp) // 4


def _in_units(scaled: Scaled, exponent: Array) -> Float[Array, "..."]:
    """The value in units of ``2^exponent``."""
    # ln 2 in two parts, the first so short that its product is exact: what is left after the
    # subtraction has no rounding but that of the log scale itself.
    bits = 2.0 ** (jnp.finfo(scaled.mantissa.dtype).nmant // 2)
    short = round(math.log(2) * bits) / bits
    left = scaled.log_scale - exponent * short - exponent * (math.log(2) - short)
    half = jnp.exp(left / 2)
    return scaled.mantissa * half * half


def _exponent(array: Array) -> Int[Array, "..."]:
    """The largest power of two no larger than a number in size; that of zero is ``_NOTHING``."""
    return jnp.where(array == 0, _NOTHING, jnp.frexp(array)[1] - 1).astype(jnp.int32)


def _times_power(array: Array, exponent: Array) -> Float[Array, "..."]:
    """``array * 2^exponent`` without rounding."""
    half = exponent // 2
    return array * _power(half, array.dtype) * _power(exponent - half, array.dtype)


def _power(exponent: Array, dtype: Any) -> Float[Array, "..."]:
    """``2^exponent``, or the nearest power of two that is a normal number."""
    info = jnp.finfo(dtype)
    integer = {16: jnp.int16, 32: jnp.int32, 64: jnp.int64}[info.bits]
    biased = jnp.clip(exponent, info.minexp, info.maxexp - 1) - (info.minexp - 1)
    return jax.lax.bitcast_convert_type(biased.astype(integer) << info.nmant, dtype)


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

    def make(*, weight_decay: Number, **settings: Any) -> Optimizer:
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
