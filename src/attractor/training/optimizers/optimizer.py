"""Optimizers: optax transformations that also say which geometry they descend."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

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
from attractor.geometry import Frobenius, Geometry, Schatten, Spectral
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_plain
from attractor.support.settings import with_own_settings
from attractor.training.optimizers.checks import Number, is_zero, refuse_several

GradientScale = Literal[
    "absolute", "global", "per_array", "per_entry", "log_per_array", "log_per_entry"
]
Takes = Literal["single", "real", "any"]
"""What the functions of an optimizer are to be given: real numbers, none of whose arrays is empty,
in single precision at least or as they are; or anything."""
Kind = TypeVar("Kind", bound="Optimizer")

_READERS: dict[GradientScale, Callable[[PyTree], PyTree]] = {
    "absolute": magnitude,
    "global": direction,
    "per_array": leaf_directions,
    "per_entry": entry_directions,
    "log_per_array": lambda gradient: gradient,
    "log_per_entry": lambda gradient: gradient,
}
EXAMPLE = 0.5
"""A value that any hyperparameter may have."""

SINGULAR_POWERS = (Schatten(1.5), Spectral())
"""Norms whose steps are powers of singular values, which are found for many matrices at once."""

UNNAMED = "declared by the user"
"""The name of what was given none."""


class Rule(NamedTuple):
    """How an optimizer moves parameters, whatever it is called.

    Attributes:
        update: Takes gradients, memory and parameters; returns steps and memory.
        weight_decay: Multiple of the parameters that is added to the gradient first; a function of
            the step where it changes.
        retract: Returns the parameters from the optimizer's memory, where they are kept there more
            exactly than as a sum of updates.
        log_time_step: The logarithm of the time that a step amounts to for the same algorithm
            without normalization, from a scaled gradient and the further arguments of ``update``;
            NaN where several arrays are normalized each by itself, which is no change of time.
            None where it never is one, and where hyperparameters change: see ``at_step``.
        steps_by_array: Whether every array takes a step of its own length, so that several of them
            descend the largest of their norms rather than one norm of all.
        joins_heads: Whether the arrays of all attention heads are one for it; see ``joined``.
        of_singular_values: Whether most of a step is powers of singular values, which are found
            for many trials side by side.
        of_factors: Whether keys and queries are what it trains, and nothing else.
        matrix_geometry: The norm of their product W whose steepest descent it is, or None where
            that follows from the norm of the parameters, or no such norm is known.
    """

    update: Callable[..., tuple[PyTree, PyTree]]
    weight_decay: Number = 0.0
    retract: Callable[[PyTree, PyTree], PyTree] | None = None
    log_time_step: Callable[..., Float[Array, ""]] | None = None
    steps_by_array: bool = False
    joins_heads: bool = False
    of_singular_values: bool = False
    of_factors: bool = False
    matrix_geometry: Geometry | None = None


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
        needs: Names of the further arguments ``update`` takes, such as ``"log_excess"``, the
            logarithm of the loss above the best one that can be reached, or
            ``"matrix_gradient"``, the gradient in the attention matrix W.
        rule: How it moves parameters.

    In a loop of one's own, half-precision parameters are computed with in single precision, in
    which memories are kept; integers and complex numbers are refused. What was declared sees arrays
    as they come.
    """

    geometry: Geometry | None
    gradient_scale: GradientScale
    name: str
    settings: dict[str, Any]
    hyperparameters: dict[str, Any]
    needs: frozenset[str]
    rule: Rule
    _remake: Callable[[Mapping[str, Any]], Optimizer]

    def __new__(
        cls,
        init: Any,
        update: Any,
        *,
        geometry: Geometry | None,
        gradient_scale: GradientScale,
        name: str = UNNAMED,
        settings: dict[str, Any],
        needs: frozenset[str] = frozenset(),
        takes: Takes = "single",
        steps_by_array: bool | None = None,
        weight_decay: Number = 0.0,
        **rule: Any,
    ) -> Optimizer:
        """Joins the pair of functions with what they declare, and the fields of their ``Rule``."""
        pair = on_plain_arrays(takes, init, _with_decay(update, weight_decay))
        optimizer = super().__new__(cls, *map(with_own_settings, pair))
        optimizer.geometry = geometry
        optimizer.gradient_scale = gradient_scale
        optimizer.name = name
        decay = {} if is_zero(weight_decay) else {"weight_decay": weight_decay}
        optimizer.settings = settings | decay
        optimizer.hyperparameters = {}
        optimizer.needs = needs
        if steps_by_array is None:  # those that take singular values decompose every array
            of_values = isinstance(geometry, Schatten) and geometry != Frobenius()
            steps_by_array = gradient_scale == "per_array" or of_values
        optimizer.rule = Rule(update, weight_decay, steps_by_array=steps_by_array, **rule)
        optimizer._remake = lambda values: optimizer
        return optimizer

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}({settings})"

    @property
    def retract(self) -> Callable[[PyTree, PyTree], PyTree] | None:
        """Returns the parameters from its memory; None where they are a sum of updates."""
        return self.rule.retract

    @property
    def log_time_step(self) -> Callable[..., Float[Array, ""]] | None:
        """The logarithm of the time of a step; None where there is no such time: see ``Rule``."""
        return self.rule.log_time_step

    @property
    def steps_by_array(self) -> bool:
        """Whether every array takes a step of its own length."""
        return self.rule.steps_by_array

    @property
    def joins_heads(self) -> bool:
        """Whether the arrays of all attention heads are one for it."""
        return self.rule.joins_heads

    @property
    def of_singular_values(self) -> bool:
        """Whether most of a step is powers of singular values."""
        return self.rule.of_singular_values

    @property
    def matrix_geometry(self) -> Geometry | None:
        """The norm of W whose steepest descent it is, where the parameters' norm does not say."""
        return self.rule.matrix_geometry

    @property
    def example(self) -> Optimizer:
        """The same algorithm with placeholders for its numbers: one object for all values."""
        return self.with_numbers(dict.fromkeys(self.hyperparameters, EXAMPLE))

    def with_numbers(self, values: Mapping[str, Any]) -> Optimizer:
        """The same algorithm with other values of its hyperparameters, traced ones perhaps."""
        return self._remake(values)

    def with_several(self, values: Mapping[str, tuple[float, ...]]) -> Optimizer:
        """The same algorithm with several values of some of its hyperparameters, for ``train``."""

        def refuse(*given: Any, **further: Any) -> None:
            refuse_several(*next(iter(values.items())))

        return rebuilt(
            self,
            type(self),
            refuse,
            refuse,
            settings=self.settings | {name: list(each) for name, each in values.items()},
            hyperparameters=self.hyperparameters | dict(values),
        )

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
        return not is_zero(self.rule.weight_decay)

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
        if self.rule.of_factors and not factors:
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
            gradient = add_multiple(gradient, self.rule.weight_decay, parameters)
        updates, memory = self.rule.update(self.read(gradient), memory, parameters, **further)
        if self.rule.retract is None:
            return optax.apply_updates(parameters, updates), memory
        return self.rule.retract(parameters, memory), memory

    def at_step(self, memory: PyTree) -> Optimizer:
        """The optimizer of the next step: itself, but for hyperparameters that change."""
        return self

    def at_rest(self, memory: PyTree, before: PyTree) -> Bool[Array, ""]:
        """Whether the memory is as it was, so that the same gradient would move nothing again."""
        rests = jnp.array(True)
        for new, old in zip(jax.tree.leaves(memory), jax.tree.leaves(before), strict=True):
            rests &= (new == old).all()
        return rests


def rebuilt(optimizer: Optimizer, kind: type[Kind], init: Any, update: Any, **changes: Any) -> Kind:
    """An optimizer of another pair of functions, which declares what this one does but for changes.

    Args:
        optimizer: The optimizer.
        kind: The class of the new one.
        init: Makes the memory of parameters.
        update: Takes gradients, memory and parameters; returns steps and memory.
        **changes: Other values of attributes.
    """
    pair = map(with_own_settings, (init, update))
    made = optax.GradientTransformationExtraArgs.__new__(kind, *pair)
    vars(made).update(vars(optimizer) | changes)
    return made


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


def on_plain_arrays(
    takes: Takes, init: Callable[..., PyTree], update: Callable[..., tuple[PyTree, PyTree]]
) -> tuple[Callable[..., PyTree], Callable[..., tuple[PyTree, PyTree]]]:
    """The functions of an optimizer for arrays of any floating point, empty ones among them.

    In half precision a memory of gradients would stand still, and there is no decomposition of
    matrices. So half-precision arrays are computed with in single precision, in which memories are
    kept; steps have the type of the parameters again. Empty arrays take no part. Gradients with
    scales of their own are passed on.

    Args:
        takes: What the functions are to be given.
        init: Makes the memory of parameters.
        update: Takes gradients, memory and parameters; returns steps and memory.
    """
    if takes == "any":
        return init, update

    def init_of_plain(params: PyTree) -> PyTree:
        own = _plain("params", params, takes)
        return init(own) if jax.tree.leaves(own) else ()

    def update_of_plain(
        updates: PyTree, state: PyTree, params: PyTree | None = None, **further: Any
    ) -> tuple[PyTree, PyTree]:
        own = _plain("updates", updates, takes)
        if not jax.tree.leaves(own):
            return updates, state
        held = None if params is None else _plain("params", params, takes)
        found, state = update(own, state, held, **further)
        given, structure = jax.tree.flatten(updates)
        like = given if params is None else jax.tree.leaves(params)
        steps = iter(jax.tree.leaves(found))
        return structure.unflatten(
            [
                _as_narrow(next(steps), one, takes) if np.size(leaf) else leaf
                for leaf, one in zip(given, like, strict=True)
            ]
        ), state

    return init_of_plain, update_of_plain


def _plain(argument: str, tree: PyTree, takes: Takes) -> PyTree:
    """The arrays as the functions take them, and none in the place of empty ones."""

    def apply(leaf: Any) -> Any:
        if isinstance(leaf, Scaled):
            return leaf
        dtype = jnp.result_type(leaf)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise InvalidInputError(
                argument,
                f"optimizers move real numbers, not {dtype}",
                "Leave such arrays out, with equinox.partition or optax.masked",
            )
        if not np.size(leaf):
            return None
        return leaf.astype(jnp.float32) if takes == "single" and _is_narrow(dtype) else leaf

    return jax.tree.map(apply, tree)


def _as_narrow(step: Array, like: Any, takes: Takes) -> Array:
    """A step in half precision, where that is what it is added to."""
    dtype = jnp.result_type(like.mantissa if isinstance(like, Scaled) else like)
    return step.astype(dtype) if takes == "single" and _is_narrow(dtype) else step


def _is_narrow(dtype: Any) -> bool:
    return dtype.itemsize < 4
