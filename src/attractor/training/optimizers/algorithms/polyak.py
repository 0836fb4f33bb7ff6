"""Gradient descent whose step length follows from how far the loss is above its least value."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled, log_norm
from attractor.geometry import Frobenius
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.hyperparameters import Number, Numbers, hyperparameters
from attractor.training.optimizers.leaves import as_scaled
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.registry import register_optimizer


@register_optimizer("Polyak step", "polyak")
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
    return _polyak_step(scale, weight_decay)


@hyperparameters("scale", "weight_decay")
def _polyak_step(scale: Number, weight_decay: Number) -> Optimizer:
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
        name="Polyak step",
        settings={"scale": scale},
        log_time_step=log_time_step,
        weight_decay=weight_decay,
        needs=frozenset({"log_excess"}),
    )
