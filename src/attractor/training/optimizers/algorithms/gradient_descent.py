"""Gradient descent: plain, normalized, and with the Polyak step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled, direction, log_norm
from attractor.geometry import Frobenius
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.checks import Number, is_zero
from attractor.training.optimizers.leaves import as_scaled, log_size, memoryless, square_sum, unit
from attractor.training.optimizers.optimizer import GradientScale, Optimizer
from attractor.training.optimizers.schedules import Numbers
from attractor.training.optimizers.table import register_optimizer


@register_optimizer("gradient descent", "gd", hyperparameters=("learning_rate", "weight_decay"))
def gradient_descent(learning_rate: Numbers, *, weight_decay: Numbers = 0.0) -> Optimizer:
    """Gradient descent ``W <- W - learning_rate * grad L(W)``.

    Args:
        learning_rate: The step size, positive; or a schedule of it.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If the learning rate is not a positive finite number, or the weight
            decay is negative.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.gradient_descent(10.0), steps=1000)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([0.62, 0.58])
    """
    return Optimizer(
        *memoryless(learning_rate, lambda gradient: gradient),
        geometry=Frobenius(),
        gradient_scale="absolute",
        settings={"learning_rate": learning_rate},
        log_time_step=lambda gradient, **further: jnp.log(learning_rate),
        weight_decay=weight_decay,
    )


@register_optimizer(
    "normalized gradient descent", "ngd", hyperparameters=("learning_rate", "eps", "weight_decay")
)
def normalized_gradient_descent(
    learning_rate: Numbers,
    *,
    per_factor: bool = False,
    eps: Numbers = 0.0,
    weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Normalized gradient descent ``W <- W - learning_rate * grad L(W) / ||grad L(W)||_F``.

    A gradient that is exactly zero takes a zero step. Unless ``eps`` is positive, every other
    step has the length of the learning rate, however small the gradient.

    Args:
        learning_rate: The length of a step, positive; or a schedule of it.
        per_factor: Whether each array of parameters is divided by the norm of its own gradient,
            as *Transformers as Support Vector Machines* (arXiv 2308.16898) trains keys and
            queries. By default all are divided by the one norm of all together, which leaves the
            path that of gradient descent; with a single array there is no difference.
        eps: What is added to the norm that divides, 2.2e-16 in published code. Gradients much
            smaller than it make no progress; beside a weight decay of its size it lets training
            converge, where steps of constant length go on to circle the minimum.
        weight_decay: Multiple of the parameters to add to the gradient before it is normalized.

    Raises:
        InvalidInputError: If the learning rate is not a positive finite number, or ``eps`` or
            the weight decay is negative.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=1000)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([0.96, 0.95])
    """

    def log_time_step(gradient: PyTree[Scaled], **further: Array) -> Float[Array, ""]:
        if per_factor and len(jax.tree.leaves(gradient)) > 1:
            return jnp.asarray(jnp.nan)
        return time_of_unit_step(learning_rate, log_size(gradient, square_sum, 2), eps)

    settings: dict[str, Any] = {"learning_rate": learning_rate}
    normalize: Callable[[PyTree], PyTree] = _unit_tree
    gradient_scale: GradientScale = "global"
    if per_factor:
        settings["per_factor"] = True
        normalize, gradient_scale = _unit_leaves, "per_array"
    if not is_zero(eps):
        settings["eps"] = eps
        normalize = functools.partial(_guarded_unit, per_factor, eps)
        gradient_scale = "log_per_array"
    return Optimizer(
        *memoryless(learning_rate, normalize),
        geometry=Frobenius(),
        gradient_scale=gradient_scale,
        settings=settings,
        log_time_step=log_time_step,
        weight_decay=weight_decay,
        steps_by_array=per_factor,
    )


@register_optimizer("Polyak step", "polyak", hyperparameters=("scale", "weight_decay"))
def polyak_step(scale: Numbers = 1.0, *, weight_decay: Numbers = 0.0) -> Optimizer:
    """Gradient descent with the Polyak step size.

    ``W <- W - scale * (L(W) - L*) / ||grad L(W)||_F^2 * grad L(W)``, where ``L*`` is the least
    value of the loss. Everything is computed with logarithms, so the step is right where both the
    loss and its gradient are far below what floating point holds. In a loop of your own,
    ``update`` takes the logarithm of ``L(W) - L*`` as ``log_excess``.

    Args:
        scale: Multiple of Polyak's step to take, positive.
        weight_decay: Multiple of the parameters to add to the gradient. The excess stays that of
            the loss alone.

    Raises:
        InvalidInputError: If the scale is not a positive finite number, or the weight decay is
            negative.
    """

    def update(
        updates: PyTree,
        state: optax.EmptyState,
        params: PyTree | None = None,
        *,
        log_excess: Float[Array, ""] | float | None = None,
        **further: Any,
    ) -> tuple[PyTree, optax.EmptyState]:
        if log_excess is None:
            raise InvalidInputError(
                "log_excess",
                "the Polyak step needs to know how far the loss is above its least value",
                "Give the logarithm of that difference, by update(..., log_excess=...)",
            )
        gradient = as_scaled(updates)
        size = log_norm(gradient)
        size = jnp.where(jnp.isneginf(size), 0, size)  # a zero gradient takes a zero step
        ahead = jnp.log(scale) + log_excess - size

        def step(leaf: Scaled) -> Array:
            # In two halves, because a large mantissa can bring back a factor that underflows.
            half = jnp.exp((ahead + (leaf.log_scale - size)) / 2).astype(leaf.mantissa.dtype)
            return -leaf.mantissa * half * half

        return jax.tree.map(step, gradient), state

    def log_time_step(
        gradient: PyTree[Scaled], *, log_excess: Float[Array, ""] | float = jnp.nan
    ) -> Float[Array, ""]:
        size = log_norm(gradient)
        return jnp.where(jnp.isneginf(size), -jnp.inf, jnp.log(scale) + log_excess - 2 * size)

    return Optimizer(
        lambda params: optax.EmptyState(),
        update,
        geometry=Frobenius(),
        gradient_scale="log_per_array",
        settings={"scale": scale},
        log_time_step=log_time_step,
        weight_decay=weight_decay,
        needs=frozenset({"log_excess"}),
    )


def time_of_unit_step(
    learning_rate: Number, log_size: Float[Array, ""], eps: Number = 0.0
) -> Float[Array, ""]:
    """Logarithm of the time that a step takes without normalization, ``log(rate / (size + eps))``.

    Minus infinity, no time, where the size of the gradient is exactly zero.
    """
    stationary = jnp.isneginf(log_size)
    if not is_zero(eps):
        log_size = jnp.logaddexp(log_size, jnp.log(eps))
    return jnp.where(stationary, -jnp.inf, jnp.log(learning_rate) - log_size)


def _guarded_unit(per_factor: bool, eps: Number, gradient: PyTree) -> PyTree:
    """``g / (||g|| + eps)``, each leaf by its own norm or all by one."""
    scaled = as_scaled(gradient)
    if per_factor:
        return jax.tree.map(functools.partial(_guarded_unit, False, eps), scaled)
    share = jax.nn.sigmoid(log_norm(scaled) - jnp.log(eps))  # ||g|| / (||g|| + eps)
    return jax.tree.map(lambda leaf: leaf * share, _unit_tree(direction(scaled)))


def _unit_tree(tree: PyTree) -> PyTree:
    return unit(tree, square_sum, 2)


def _unit_leaves(tree: PyTree) -> PyTree:
    return jax.tree.map(_unit_tree, tree)
