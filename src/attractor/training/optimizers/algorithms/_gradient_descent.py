"""Gradient descent, plain and normalized."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled, direction, log_norm
from attractor.geometry import Frobenius
from attractor.support.checks import check_flag
from attractor.training.optimizers.hyperparameters import Number, Numbers, hyperparameters, is_zero
from attractor.training.optimizers.leaves import as_scaled, log_size, memoryless, square_sum, unit
from attractor.training.optimizers.optimizer import GradientScale, Optimizer
from attractor.training.optimizers.registry import register_optimizer


@register_optimizer("gradient descent", "gd")
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
    return _gradient_descent(learning_rate, weight_decay)


@register_optimizer("normalized gradient descent", "ngd")
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
    return _normalized_gradient_descent(
        learning_rate, check_flag("per_factor", per_factor), eps, weight_decay
    )


@hyperparameters("learning_rate", "weight_decay")
def _gradient_descent(learning_rate: Number, weight_decay: Number) -> Optimizer:
    return Optimizer(
        *memoryless(learning_rate, lambda gradient: gradient),
        geometry=Frobenius(),
        gradient_scale="absolute",
        name="gradient descent",
        settings={"learning_rate": learning_rate},
        log_time_step=lambda gradient, **further: jnp.log(learning_rate),
        weight_decay=weight_decay,
    )


@hyperparameters("learning_rate", "eps", "weight_decay")
def _normalized_gradient_descent(
    learning_rate: Number, per_factor: bool, eps: Number, weight_decay: Number
) -> Optimizer:
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
        name="normalized gradient descent",
        settings=settings,
        log_time_step=log_time_step,
        weight_decay=weight_decay,
        steps_by_array=per_factor,
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
