"""Mirror descent on the entries of a matrix or on its singular values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled
from attractor.errors import InvalidInputError
from attractor.geometry import Lp, Schatten
from attractor.geometry.exponent import checked_exponent
from attractor.training.optimizers.checks import (
    check_flag,
    check_learning_rate,
    check_not_negative,
    check_weight_decay,
)
from attractor.training.optimizers.dual_norm import (
    log_dual_norm,
    unit_in_dual_norm,
    unit_with_eps,
)
from attractor.training.optimizers.gradient_descent import time_of_unit_step
from attractor.training.optimizers.leaves import as_scaled, on_matrices
from attractor.training.optimizers.optimizer import Optimizer, Reads
from attractor.training.optimizers.registry import register_optimizer

Exponents = float | Callable[[str], float]


class MirrorDescentState(NamedTuple):
    """What mirror descent remembers.

    Attributes:
        dual: The mirror image ``Y`` of the parameters, in single precision at least.
        moved: What has ever taken a step: entries, or whole matrices where singular values are
            what is mapped. The rest keeps its first value, whose image may not be a float.
    """

    dual: PyTree[Float[Array, "..."]]
    moved: PyTree


@register_optimizer("mirror descent", "md", number="p")
def mirror_descent(
    learning_rate: float,
    p: Exponents = 1.5,
    normalize: bool = True,
    *,
    per_factor: bool = True,
    eps: float = 0.0,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Mirror descent with the potential ``sum |W_ij|^p / p``.

    The step is ``Y <- Y - learning_rate * G``, ``W = sign(Y) |Y|^(1 / (p - 1))``, where ``Y``
    starts at ``sign(W) |W|^(p - 1)`` and ``G`` is the gradient, divided by its norm ``||.||_q``,
    ``q = p / (p - 1)``, if normalized. This is l_p-AttGD, and with a trained head l_p-JointGD, of
    *Optimizing Attention with Mirror Descent* (arXiv 2410.14581). With p = 2 it is (normalized)
    gradient descent, to the last bit.

    ``Y`` is what it remembers, in single precision at least, because near p = 1 most values of
    ``Y`` stand for weights too small to store: a weight that starts at zero would never leave it.
    The parameters follow from ``Y`` alone. So in a chain of optax transformations this one comes
    last, and a loop of your own must not change the parameters otherwise.

    Args:
        learning_rate: The length of a step in ``Y``, positive.
        p: The exponent, more than 1; or a function from the path of an array among the parameters,
            such as "attention" or "head.weight", to its exponent.
        normalize: Whether the gradient is divided by its dual norm. If not, steps follow its true
            magnitude.
        per_factor: Whether every array is divided by the dual norm of its own gradient, as the
            paper trains attention and head; otherwise all by the one norm of all together. With a
            single array there is no difference.
        eps: What is added to the dual norm that divides, 2.2e-16 in published code: gradients
            much smaller than it make no progress.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range, or ``eps`` is given where nothing
            is divided.
    """
    if check_not_negative("eps", eps) and not normalize:
        raise InvalidInputError("eps", "nothing is divided", "Leave it out, or set normalize=True")
    return _mirror_descent(
        Lp,
        check_learning_rate(learning_rate),
        p if callable(p) else _check_exponent(p),
        check_flag("normalize", normalize),
        check_flag("per_factor", per_factor),
        eps,
        check_weight_decay(weight_decay),
    )


@register_optimizer("Schatten mirror descent", "smd", number="p")
def schatten_mirror_descent(
    learning_rate: float,
    p: Exponents = 1.5,
    normalize: bool = True,
    *,
    per_factor: bool = True,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Mirror descent with the potential ``sum s_i^p / p`` of the singular values of ``W``.

    The step is ``Y <- Y - learning_rate * G``, ``W = U s^(1 / (p - 1)) V^T`` with
    ``Y = U s V^T``; otherwise as ``mirror_descent``, the dual norm being that of the singular
    values. Singular values of ``Y`` that rounding alone could have made count as zero.

    Args:
        learning_rate: The length of a step in ``Y``, positive.
        p: The exponent, more than 1; or a function from the path of an array among the parameters
            to its exponent.
        normalize: Whether the gradient is divided by its dual norm.
        per_factor: Whether every array is divided by the dual norm of its own gradient;
            otherwise all by the one norm of all together.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """
    return _mirror_descent(
        Schatten,
        check_learning_rate(learning_rate),
        p if callable(p) else _check_exponent(p),
        check_flag("normalize", normalize),
        check_flag("per_factor", per_factor),
        0.0,
        check_weight_decay(weight_decay),
    )


# The same settings give the same object, so that training compiled once is compiled for good.
@functools.lru_cache
def _mirror_descent(
    family: type[Lp] | type[Schatten],
    learning_rate: float,
    p: Exponents,
    normalize: bool,
    per_factor: bool,
    eps: float,
    weight_decay: float,
) -> Optimizer:
    def geometries(tree: PyTree) -> PyTree:
        """The geometry of every leaf."""

        def of_path(path: Any, leaf: Any) -> Lp | Schatten:
            if not callable(p):
                return family(p)
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            return family(_check_exponent(p(name), f"p({name!r})"))

        return jax.tree_util.tree_map_with_path(of_path, tree)

    def init(params: PyTree) -> MirrorDescentState:
        def image(geometry: Lp | Schatten, leaf: Array | np.ndarray) -> Array:
            master = jnp.asarray(leaf, jnp.promote_types(leaf.dtype, jnp.float32))
            return on_matrices(geometry.mirror_map, master)

        shape = () if family is Schatten else None
        return MirrorDescentState(
            jax.tree.map(image, geometries(params), params),
            jax.tree.map(lambda leaf: jnp.zeros_like(leaf, bool, shape=shape), params),
        )

    def update(
        updates: PyTree,
        state: MirrorDescentState,
        params: PyTree | None = None,
        **further: Any,
    ) -> tuple[PyTree, MirrorDescentState]:
        if params is None:
            raise InvalidInputError(
                "params", "mirror descent needs them", "Call update(gradient, state, params)"
            )
        kinds = geometries(updates)
        rise = slopes(updates, state.dual, kinds)
        steps = jax.tree.map(lambda leaf: -learning_rate * leaf, rise)
        dual = jax.tree.map(jnp.add, state.dual, steps)
        moved = jax.tree.map(
            lambda before, step: before | (step != 0 if before.ndim else (step != 0).any()),
            state.moved,
            steps,
        )

        def difference(geometry: Any, Y: Array, flag: Array, step: Array, leaf: Array) -> Array:
            if geometry.p == 2 and Y.dtype == leaf.dtype:
                return step
            return _weights(geometry, Y, flag, leaf) - leaf.astype(Y.dtype)

        differences = jax.tree.map(difference, kinds, dual, moved, steps, params)
        return differences, MirrorDescentState(dual, moved)

    def slopes(updates: PyTree, dual: PyTree, kinds: PyTree) -> PyTree:
        """What is subtracted from the dual variables, but for the learning rate."""
        if eps:
            scaled = jax.tree.map(
                lambda leaf, Y: Scaled(leaf.mantissa.astype(Y.dtype), leaf.log_scale),
                as_scaled(updates),
                dual,
            )
            return unit_with_eps(scaled, kinds, per_factor, math.log(eps))
        wide = jax.tree.map(lambda leaf, Y: leaf.astype(Y.dtype), updates, dual)
        return unit_in_dual_norm(wide, kinds, per_factor) if normalize else wide

    def retract(parameters: PyTree, memory: MirrorDescentState) -> PyTree:
        def weights(geometry: Any, Y: Array, flag: Array, leaf: Array) -> Array:
            return _weights(geometry, Y, flag, leaf).astype(leaf.dtype)

        return jax.tree.map(weights, geometries(parameters), memory.dual, memory.moved, parameters)

    def log_time_step(gradient: PyTree[Scaled], **further: Array) -> Float[Array, ""]:
        if not normalize:
            return jnp.asarray(math.log(learning_rate))
        if per_factor and len(jax.tree.leaves(gradient)) > 1:
            return jnp.asarray(jnp.nan)
        size = log_dual_norm(gradient, geometries(gradient))
        if eps:
            size = jnp.where(jnp.isneginf(size), size, jnp.logaddexp(size, math.log(eps)))
        return time_of_unit_step(learning_rate, size)

    normalized: Reads = "leaf directions" if per_factor else "direction"
    return Optimizer(
        init,
        update,
        geometry=None if callable(p) else family(p),
        reads="scaled" if eps else normalized if normalize else "magnitude",
        name="mirror descent" if family is Lp else "Schatten mirror descent",
        settings={
            "learning_rate": learning_rate,
            "p": getattr(p, "__qualname__", repr(p)) if callable(p) else p,
            "normalize": normalize,
            "per_factor": per_factor,
            **({"eps": eps} if eps else {}),
        },
        retract=retract,
        log_time_step=log_time_step,
        weight_decay=weight_decay,
    )


def _weights(
    geometry: Lp | Schatten, Y: Float[Array, "..."], moved: Array, start: Float[Array, "..."]
) -> Float[Array, "..."]:
    """The parameters that belong to a mirror image."""
    weights = on_matrices(geometry.inverse_mirror_map, Y)
    return jnp.where(moved, weights, start.astype(Y.dtype))


def _check_exponent(p: Any, argument: str = "p") -> float:
    try:
        value = checked_exponent(p)
    except InvalidInputError:
        value = math.nan
    if not 1 < value < math.inf:
        raise InvalidInputError(
            argument, f"{p!r} is not a number above 1", "Give one, such as 1.5; not infinity"
        )
    return value
