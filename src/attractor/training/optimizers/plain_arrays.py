"""What optimizers are given in loops of one's own: half precision, and empty arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from attractor.attention.scaled import Scaled
from attractor.support.errors import InvalidInputError

Takes = Literal["single", "real", "any"]
"""What the functions of an optimizer are to be given: real numbers, none of whose arrays is empty,
in single precision at least or as they are; or anything."""


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
