"""Adam, with and without the constant in its denominator: two algorithms."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PyTree

from attractor.geometry import Lp
from attractor.support.checks import check_flag
from attractor.training.optimizers.hyperparameters import Number, Numbers, hyperparameters, is_zero
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.registry import register_optimizer
from attractor.training.optimizers.rescaled_state import with_rescaled_state


@register_optimizer("adam")
def adam(
    learning_rate: Numbers,
    b1: Numbers = 0.9,
    b2: Numbers = 0.999,
    eps: Numbers = 0.0,
    *,
    bias_correction: bool = True,
    weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Adam, by default without the constant that changes what it is near convergence.

        m <- b1 m + (1 - b1) g,    v <- b2 v + (1 - b2) g^2
        W <- W - learning_rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

    With ``eps = 0`` a step does not depend on the size of the gradient, and the algorithm, named
    "Adam, eps = 0", is exact at every magnitude; an entry that never had a gradient stays. On
    separable data it maximizes the margin in the entrywise maximum norm: Zhang, Zou and Cao, *The
    Implicit Bias of Adam on Separable Data* (arXiv 2406.10650).

    With ``eps > 0`` it is ``optax.adam`` on true gradients, named "Adam". Once gradients are below
    eps it becomes gradient descent with momentum; no geometry is known for it. Squares of gradients
    underflow below 1e-162, so that an eps below 1e-150 is not exact where 0 is.

    With ``b1 = b2 = 0`` it is sign descent. With ``b2 < b1^2`` steps are not bounded: the memory
    outlives that of squares, and steps grow as gradients fall. ``weight_decay`` is what it is for
    every optimizer here, part of the gradient, and so is divided by the root of squares, too; that
    of AdamW is ``declare(optax.adamw(...), geometry=None)``.

    Args:
        learning_rate: The step size, positive; or a schedule of it.
        b1: What remains of the mean of gradients after a step, in [0, 1).
        b2: What remains of the mean of their squares, in [0, 1).
        eps: What is added to the denominator, zero or more.
        bias_correction: Whether m and v are divided by ``1 - b1^t`` and ``1 - b2^t``. If not, the
            first step is ``(1 - b1) / sqrt(1 - b2)`` times as long, with the default 3.2 times.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.

    Example:
        >>> import attractor as at
        >>> optimizer = at.adam([0.01, 0.1])  # trained side by side
        >>> optimizer.axes
        {'learning_rate': (0.01, 0.1)}
        >>> optimizer.geometry
        Lp(p=inf)
    """
    corrected = check_flag("bias_correction", bias_correction)
    return _adam(learning_rate, b1, b2, eps, corrected, weight_decay)


@hyperparameters("learning_rate", "b1", "b2", "eps", "weight_decay")
def _adam(
    learning_rate: Number,
    b1: Number,
    b2: Number,
    eps: Number,
    bias_correction: bool,
    weight_decay: Number,
) -> Optimizer:
    transformation = optax.adam(learning_rate, b1, b2, eps)
    settings = {"learning_rate": learning_rate, "b1": b1, "b2": b2, "eps": eps}
    if not bias_correction:
        rate = optax.scale_by_learning_rate(learning_rate)
        transformation = optax.chain(_uncorrected(b1, b2, eps), rate)
        settings["bias_correction"] = False
    declared = {"settings": settings, "weight_decay": weight_decay}
    if not is_zero(eps):
        plain = optax.with_extra_args_support(transformation)
        return Optimizer(*plain, geometry=None, gradient_scale="absolute", name="Adam", **declared)
    return with_rescaled_state(
        transformation, geometry=Lp(math.inf), by="entry", name="Adam, eps = 0", **declared
    )


def _uncorrected(b1: Number, b2: Number, eps: Number) -> optax.GradientTransformation:
    """``m / (sqrt(v) + eps)``, with the state of ``optax.scale_by_adam``."""
    corrected = optax.scale_by_adam(b1, b2, eps)

    def update(updates: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        _, state = corrected.update(updates, state, params)
        steps = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), state.mu, state.nu)
        return steps, state

    return optax.GradientTransformation(corrected.init, update)
