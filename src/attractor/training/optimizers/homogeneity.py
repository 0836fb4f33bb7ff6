"""Degrees of homogeneity in the gradient of the state and updates of an optax transformation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PyTree

from attractor.support.errors import InvalidInputError
from attractor.support.randomness import traced

By = Literal["tree", "leaf", "entry"]
"""The parts of a gradient with a scale of their own: all of it, each array, or each entry."""

_Step = Callable[[PyTree, PyTree, PyTree], tuple[PyTree, PyTree]]
_STEPS = 3
_PROBES = 6
_DEGREES = (0, 1, 2)


class Homogeneity(NamedTuple):
    """Degrees in the gradient: a number of degree k takes the factor c^k where that takes c.

    Attributes:
        degrees: One for each array of the state. An array that the next step does not read, as a
            momentum without memory, has degree 0 whatever it holds.
        groups: For each array of the state, the place of that whose factor it takes.
        update: The degree of the updates.
    """

    degrees: tuple[int, ...]
    groups: tuple[int, ...]
    update: int


@traced
def find_homogeneity(
    transformation: optax.GradientTransformationExtraArgs, parameters: PyTree, by: By
) -> Homogeneity:
    """Finds the degrees by feeding random gradients, and the same ones times powers of four.

    Powers of four pass through sums, products, quotients and square roots without rounding, so
    that nothing but homogeneity explains numbers that agree. Very large and very small factors
    are among them: a constant added to a norm, or a bound to clip at, shows.

    Args:
        transformation: Any optax transformation.
        parameters: Arrays, or descriptions of arrays.
        by: What takes a factor of its own.

    Raises:
        InvalidInputError: If the state or the updates are not homogeneous, or there are no
            updates.
    """
    leaves, structure = jax.tree.flatten(parameters)
    shapes = [(leaf.shape, np.dtype(leaf.dtype)) for leaf in leaves]
    powers = [_powers(shape, dtype, i, by) for i, (shape, dtype) in enumerate(shapes)]
    step = _compiled(transformation, structure, shapes)
    with jax.ensure_compile_time_eval():
        states, updates, lasts = _run(transformation, step, structure, shapes, powers)
    found = [
        _degree(path, leaf, powers) if last else (0, 0)
        for (path, leaf), last in zip(states, lasts, strict=True)
    ]
    return Homogeneity(
        tuple(degree for degree, _ in found),
        tuple(0 if by == "tree" else place for _, place in found),
        _update_degree(updates, powers),
    )


def _powers(shape: tuple[int, ...], dtype: np.dtype, place: int, by: By) -> np.ndarray:
    """Exponents of four by which the gradient of one leaf is multiplied in each probe."""
    width = int(math.log2(float(jnp.finfo(dtype).max))) // 8
    random = np.random.default_rng([7, 0 if by == "tree" else place])
    own = shape if by == "entry" else ()
    powers = random.integers(-width, width + 1, size=(_PROBES, *own))
    powers[:3] = np.array([0, -width, width]).reshape(3, *(1 for _ in own))
    return powers.reshape(_PROBES, *own, *(1 for _ in shape[len(own) :]))


def _compiled(
    transformation: optax.GradientTransformationExtraArgs,
    structure: Any,
    shapes: list[tuple[tuple[int, ...], np.dtype]],
) -> _Step:
    """A step of all probes at once, from their gradients, their states and the parameters.

    Compiled before anything is evaluated, as every constant of it would be a program there.
    """

    def described(*axes: int) -> PyTree:
        return structure.unflatten(
            [jax.ShapeDtypeStruct((*axes, *shape), dtype) for shape, dtype in shapes]
        )

    states = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((_PROBES, *leaf.shape), leaf.dtype),
        jax.eval_shape(lambda leaves: transformation.init(leaves), described()),
    )
    step = jax.vmap(transformation.update, (0, 0, None))
    return jax.jit(step).lower(described(_PROBES), states, described()).compile()


def _run(
    transformation: optax.GradientTransformationExtraArgs,
    step: _Step,
    structure: Any,
    shapes: list[tuple[tuple[int, ...], np.dtype]],
    powers: list[np.ndarray],
) -> tuple[list[tuple[Any, np.ndarray]], list[list[np.ndarray]], np.ndarray]:
    """Final states with their paths, updates of every step, and which states are ever read.

    Probes are along axis zero.
    """
    random = np.random.default_rng(11)

    def draw() -> list[np.ndarray]:
        return [random.normal(size=shape).astype(dtype) for shape, dtype in shapes]

    parameters = structure.unflatten([jnp.asarray(leaf) for leaf in draw()])
    state = transformation.init(parameters)
    state = jax.tree.map(_for_each_probe, state)
    updates = []
    held, read = np.zeros((2, len(jax.tree.leaves(state))), dtype=bool)
    for _ in range(_STEPS):
        gradient = structure.unflatten(
            [
                jnp.asarray(leaf * 4.0**power, leaf.dtype)
                for leaf, power in zip(draw(), powers, strict=True)
            ]
        )
        before = jax.tree.leaves(state)
        moved = step(gradient, state, parameters)
        # An array is read by the transformation if zeros in its place change the step.
        for place in np.flatnonzero(~read):
            held[place] |= _numbers(before[place]).any()
            erased = [
                _zeros_like(leaf) if place == other else leaf for other, leaf in enumerate(before)
            ]
            rest = jax.tree.structure(state).unflatten(erased)
            without = step(gradient, rest, parameters)
            read[place] = not _same(moved, without)
        update, state = moved
        updates.append([np.asarray(leaf) for leaf in jax.tree.leaves(update)])
    states = [(path, _numbers(leaf)) for path, leaf in jax.tree.leaves_with_path(state)]
    return states, updates, read | ~held


def _same(one: PyTree, other: PyTree) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(_numbers(a), _numbers(b)) for a, b in pairs)


def _for_each_probe(leaf: Any) -> Any:
    """A leaf as often as there are probes; NumPy takes it so without compiling anything."""
    leaf = jnp.asarray(leaf)
    return jnp.stack([leaf] * _PROBES) if _is_key(leaf) else np.stack([np.asarray(leaf)] * _PROBES)


def _zeros_like(leaf: Any) -> Any:
    return jnp.zeros_like(leaf) if _is_key(leaf) else np.zeros(leaf.shape, leaf.dtype)


def _numbers(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _degree(path: Any, leaf: np.ndarray, powers: list[np.ndarray]) -> tuple[int, int]:
    """The degree of an array of the state, and the place of the gradient's whose factor it has."""
    for degree, group in itertools.product(_DEGREES, range(len(powers))):
        if _scales(leaf, powers[group], degree):
            return degree, group
    state = jax.tree_util.keystr(path)
    raise _not_homogeneous(f"{state} of its state does not scale with the gradient")


def _update_degree(updates: list[list[np.ndarray]], powers: list[np.ndarray]) -> int:
    if not any(leaf.any() for step in updates for leaf in step):
        raise InvalidInputError(
            "transformation",
            f"its updates are zero for {_STEPS} steps, so how they scale cannot be found",
            "Give one that moves at every step",
        )
    for degree in _DEGREES:
        if all(
            _scales(leaf, power, degree)
            for step in updates
            for leaf, power in zip(step, powers, strict=True)
        ):
            return degree
    raise _not_homogeneous("its updates do not scale with the gradient")


def _not_homogeneous(problem: str) -> InvalidInputError:
    return InvalidInputError(
        "transformation",
        problem,
        "Set constants such as eps to zero and bounds to infinity, or give it true gradients: "
        'declare(transformation, geometry=..., gradient_scale="absolute")',
    )


def _scales(leaf: np.ndarray, powers: np.ndarray, degree: int) -> bool:
    """Whether each probe is the first one times the powers of four of this degree."""
    if leaf.dtype.kind not in "fc" and not jnp.issubdtype(leaf.dtype, jnp.floating):
        return degree == 0 and bool((leaf == leaf[:1]).all())
    if degree and powers.ndim != leaf.ndim:
        if powers[0].size > 1:
            return False
        powers = powers.reshape(_PROBES, *(1 for _ in leaf.shape[1:]))
    elif degree and any(m not in (1, n) for m, n in zip(powers.shape, leaf.shape, strict=True)):
        return False
    exact = leaf.astype(np.float64)
    predicted = exact[:1] * (4.0 ** (degree * powers) if degree else 1.0)
    rounding = 64 * float(jnp.finfo(leaf.dtype).eps)
    return bool(np.isclose(exact, predicted, rtol=rounding, atol=0).all())
