"""Several optimizers side by side, each for parameters of its own."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.support.checks import check_kinds, shown, suggest
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.table import named_optimizer

DEFAULT = "default"
"""What the optimizer of the parameters that are not named is called."""
_ALSO_CALLED = {"": ("p", "W"), "attention": ("p", "W"), "head.weight": ("v", "v")}
"""Names of arrays in papers, of vectors and of matrices, by their paths; one alone has none."""

Parts = dict[str, Optimizer]


def by_parameter(
    parts: Mapping[str, Optimizer | str], default: Optimizer | str | None = None
) -> Optimizer:
    """Trains parameters by different optimizers, such as Muon for some and Adam for the rest.

    Each takes the gradient in its own arrays at the scale that it needs, and treats them as all
    there is: normalized gradient descent divides them by the norm of these arrays together. Hence
    no norm is known that the whole descends, and its steps are no change of time.

    Names are those of arrays, as ``run.data`` has them: "W", "K", "Q", "p", and "head" for a head
    that is trained. In a loop of your own they are paths, as in ``{"layers.0.weight": ...}``, or
    parts of these between dots: "weight" is that of every layer. A hyperparameter with several
    values becomes an axis named by both, as ``K_learning_rate`` or ``default_learning_rate``.

    Args:
        parts: Optimizers, or names of them as ``named_optimizer`` reads them, by parameter.
        default: That of all other parameters; None if there are none.

    Raises:
        InvalidInputError: If there are no parts or one is no optimizer; when it first meets
            parameters, if a name is that of none of them, one has two, or one has none and there is
            no default.

    Example:
        >>> import attractor as at
        >>> hybrid = at.by_parameter({"W": at.muon([0.01, 0.1])}, default=at.adam(0.1))
        >>> hybrid.name, hybrid.axes
        ('Muon (W), Adam, eps = 0 (default)', {'W_learning_rate': (0.01, 0.1)})
    """
    check_kinds(parts=(parts, Mapping))
    if not parts:
        raise InvalidInputError("parts", "it is empty", 'Give {"K": muon(0.1)}, say')
    given = {**parts} if default is None else {**parts, DEFAULT: default}
    found: Parts = {}
    for name, part in given.items():
        if not isinstance(name, str) or not name or (name == DEFAULT and DEFAULT in parts):
            raise InvalidInputError(
                "parts", f"{shown(name)} names no parameter", 'Give names such as "K" or "head"'
            )
        found[name] = named_optimizer(part) if isinstance(part, str) else part
        argument = "default" if name == DEFAULT else f"parts[{name!r}]"
        check_kinds(**{argument: (found[name], Optimizer)})
    labels = {_label(name, "") for name in found}
    if len(labels) < len(found):
        raise InvalidInputError(
            "parts", "two names differ in marks alone", "Name one of these parameters otherwise"
        )
    return _with_numbers(found, {})


class HybridOptimizer(Optimizer):
    """Several optimizers, each for parameters of its own.

    Attributes:
        parts: Them by the names of parameters.
    """

    parts: Parts

    def step(
        self, gradient: PyTree[Scaled], memory: PyTree, parameters: PyTree, **further: Array
    ) -> tuple[PyTree, PyTree]:
        """Takes one step of each at a gradient of any magnitude."""

        def step_of(part: Optimizer, own: Any, memory: Any, held: Any, **needed: Array) -> Any:
            if not part.by_entry:
                own = jax.tree.map(_with_one_scale, own)
            return part.step(own, memory, held, **needed)

        return _apart(self.parts, step_of, gradient, memory, parameters, further)

    def at_rest(self, memory: dict[str, PyTree], before: dict[str, PyTree]) -> Bool[Array, ""]:
        """Whether the same gradient would move nothing again, by none of them."""
        rests = [self.parts[name].at_rest(memory[name], before[name]) for name in memory]
        return jnp.stack(rests).all()


def _with_numbers(parts: Parts, values: Mapping[str, Any]) -> Optimizer:
    """The hybrid of the parts with some values of their hyperparameters, by label."""
    several: dict[str, tuple[float, ...]] = {}
    made: Parts = {}
    for name, part in parts.items():
        numbers = {
            own: values.get(_label(name, own), value) for own, value in part.hyperparameters.items()
        }
        several |= {
            _label(name, own): value for own, value in numbers.items() if isinstance(value, tuple)
        }
        one = {own: v[0] if isinstance(v, tuple) else v for own, v in numbers.items()}
        made[name] = part.with_numbers(one)
    numbers = {
        _label(name, own): value
        for name, part in made.items()
        for own, value in part.hyperparameters.items()
    }
    if any(isinstance(value, jax.Array) for value in numbers.values()):
        hybrid = _made(made)
    else:
        # Their names belong to the key: two optimizers may be made of the same functions.
        hybrid = _kept(tuple((name, part, part.name) for name, part in made.items()))
    hybrid.hyperparameters = numbers
    hybrid._remake = lambda values: _with_numbers(made, values)
    return hybrid.with_several(several) if several else hybrid


@functools.cache
def _kept(parts: tuple[tuple[str, Optimizer, str], ...]) -> HybridOptimizer:
    return _made({name: part for name, part, _ in parts})


def _made(parts: Parts) -> HybridOptimizer:
    def init(params: PyTree) -> dict[str, PyTree]:
        owners = _owners(tuple(parts), params)
        return {
            name: parts[name].init(_only(params, owners, name)) for name in dict.fromkeys(owners)
        }

    def update(
        updates: PyTree, state: PyTree, params: PyTree | None = None, **further: Any
    ) -> tuple[PyTree, PyTree]:
        def update_of(part: Optimizer, own: Any, memory: Any, held: Any, **needed: Any) -> Any:
            return part.update(own, memory, held, **needed)

        return _apart(parts, update_of, updates, state, params, further)

    hybrid: Any = HybridOptimizer(
        init,
        update,
        geometry=None,
        gradient_scale="log_per_entry"
        if any(part.by_entry for part in parts.values())
        else "log_per_array",
        name=", ".join(f"{part.name} ({name})" for name, part in parts.items()),
        settings={
            label: value
            for name, part in parts.items()
            for label, value in {
                _label(name, "optimizer"): part.name,
                **{_label(name, own): value for own, value in part.settings.items()},
            }.items()
        },
        needs=frozenset[str]().union(*(part.needs for part in parts.values())),
        of_singular_values=any(part.of_singular_values for part in parts.values()),
        takes="any",
    )
    hybrid.parts = parts
    return hybrid


def _apart(
    parts: Parts,
    act: Callable[..., tuple[PyTree, PyTree]],
    gradient: PyTree,
    memory: dict[str, PyTree],
    parameters: PyTree | None,
    further: Mapping[str, Any],
) -> tuple[PyTree, dict[str, PyTree]]:
    """What each optimizer makes of its own arrays, joined; and their memories."""
    owners = _owners(tuple(parts), gradient if parameters is None else parameters)
    moved, remembered = {}, {}
    for name in dict.fromkeys(owners):
        part = parts[name]
        held = None if parameters is None else _only(parameters, owners, name)
        needed = {key: further[key] for key in part.needs if key in further}
        own = _only(gradient, owners, name)
        found, remembered[name] = act(part, own, memory[name], held, **needed)
        moved[name] = iter(jax.tree.leaves(found))
    leaves = [next(moved[name]) for name in owners]
    return jax.tree.structure(gradient).unflatten(leaves), remembered


def _only(tree: PyTree, owners: tuple[str, ...], name: str) -> PyTree:
    """The tree with the arrays of one optimizer, and none in the place of others."""
    leaves, structure = jax.tree.flatten(tree)
    pairs = zip(leaves, owners, strict=True)
    return structure.unflatten([leaf if own == name else None for leaf, own in pairs])


def _owners(names: tuple[str, ...], parameters: PyTree) -> tuple[str, ...]:
    """The name of the optimizer of every array."""
    named, _ = jax.tree_util.tree_flatten_with_path(parameters)
    paths = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in named]
    called = {
        path: _names(path, jnp.ndim(leaf)) for path, (_, leaf) in zip(paths, named, strict=True)
    }
    asked = [name for name in names if name != DEFAULT]
    known = ", ".join(
        own[0] if own[0] == path else f"{own[0]} ({path})" for path, own in called.items()
    )
    for name in asked:
        if not any(name in own for own in called.values()):
            every = [one for own in called.values() for one in own]
            raise InvalidInputError(
                "parts", f"no parameter is called {name!r}", f"{suggest(name, every)}Known: {known}"
            )
    owners = []
    for path, own in called.items():
        fitting = [name for name in asked if name in own]
        if len(fitting) > 1:
            raise InvalidInputError(
                "parts", f"{path} has two optimizers, of {' and '.join(fitting)}", "Leave out one"
            )
        if not fitting and DEFAULT not in names:
            raise InvalidInputError(
                "parts", f"{path} has no optimizer", "Name it, or give a default"
            )
        owners.append(fitting[0] if fitting else DEFAULT)
    return tuple(owners)


def _names(path: str, axes: int) -> list[str]:
    """What an array may be called: parts of its path between dots, and its name in papers."""
    words = path.split(".")
    parts = [
        ".".join(words[first:last])
        for first in range(len(words))
        for last in range(first + 1, len(words) + 1)
    ]
    also = [_ALSO_CALLED[path][min(axes, 2) - 1]] if path in _ALSO_CALLED and axes else []
    return [*also, *parts]


def _with_one_scale(leaf: Scaled) -> Scaled:
    """An array with one scale for all entries."""
    if not jnp.ndim(leaf.log_scale):
        return leaf
    scale = common_log_scale(jnp.where(leaf.mantissa != 0, leaf.log_scale, -jnp.inf))
    return Scaled(leaf.mantissa * relative(leaf.log_scale, scale), scale)


def _label(name: str, own: str) -> str:
    """The name of a setting of the optimizer of a parameter."""
    return f"{re.sub(r'[^0-9a-zA-Z]+', '_', name)}_{own}"
