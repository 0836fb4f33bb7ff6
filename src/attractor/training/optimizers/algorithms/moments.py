"""Optimizers that remember averages of gradients: momentum, of signs, Lion, Adam."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PyTree

from attractor.geometry import Frobenius, Lp
from attractor.training.optimizers.checks import Number, is_zero
from attractor.training.optimizers.declared import with_rescaled_state
from attractor.training.optimizers.leaves import square_sum, unit
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.schedules import Numbers
from attractor.training.optimizers.table import register_optimizer


@register_optimizer(
    "momentum", "heavy ball", hyperparameters=("learning_rate", "decay", "weight_decay")
)
def momentum(
    learning_rate: Numbers,
    decay: Numbers = 0.9,
    *,
    nesterov: bool = False,
    weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Gradient descent with momentum, ``m <- decay m + grad L(W)``, ``W <- W - learning_rate m``.

    It is ``optax.sgd(learning_rate, momentum=decay, nesterov=nesterov)``, with a memory that
    outlives gradients below the range of floating point.

    Args:
        learning_rate: The step size, positive; or a schedule of it.
        decay: What remains of the memory after a step, in [0, 1).
        nesterov: Whether to step along ``grad L(W) + decay m`` instead.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.momentum([0.1, 10.0]), steps=1000)  # side by side
        >>> at.verify(run).data.margin_ratio[..., 0, -1].values.round(2)
        array([[0.33, 0.52],
               [0.69, 0.53]])
    """
    return with_rescaled_state(
        optax.sgd(learning_rate, momentum=decay, nesterov=nesterov),
        geometry=Frobenius(),
        settings={"learning_rate": learning_rate, "decay": decay}
        | ({"nesterov": True} if nesterov else {}),
        weight_decay=weight_decay,
    )


@register_optimizer(
    "normalized momentum", "nsgdm", hyperparameters=("learning_rate", "decay", "weight_decay")
)
def normalized_momentum(
    learning_rate: Numbers, decay: Numbers = 0.9, *, weight_decay: Numbers = 0.0
) -> Optimizer:
    """Normalized gradient descent with momentum.

        m <- decay m + (1 - decay) grad L(W),    W <- W - learning_rate m / ||m||

    with the Euclidean norm of all parameters together. Source: Cutkosky and Mehta, *Momentum
    Improves Normalized SGD* (arXiv 2002.03305).

    Args:
        learning_rate: The length of a step, positive; or a schedule of it.
        decay: What remains of the memory after a step, in [0, 1).
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """

    def normalize(updates: PyTree, params: PyTree | None = None) -> PyTree:
        return unit(updates, square_sum, 2)

    return _averaged(
        optax.stateless(normalize),
        learning_rate,
        decay,
        geometry=Frobenius(),
        by="tree",
        weight_decay=weight_decay,
    )


@register_optimizer(
    "sign momentum", "signum", hyperparameters=("learning_rate", "decay", "weight_decay")
)
def sign_momentum(
    learning_rate: Numbers, decay: Numbers = 0.9, *, weight_decay: Numbers = 0.0
) -> Optimizer:
    """Sign descent with momentum, known as Signum.

        m <- decay m + (1 - decay) grad L(W),    W <- W - learning_rate sign(m)

    Source: Bernstein et al., *signSGD* (arXiv 1802.04434).

    Args:
        learning_rate: The size of every entry of a step, positive; or a schedule of it.
        decay: What remains of the memory after a step, in [0, 1).
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """
    return _averaged(
        optax.scale_by_sign(),
        learning_rate,
        decay,
        geometry=Lp(math.inf),
        by="entry",
        weight_decay=weight_decay,
    )


@register_optimizer("Lion", "lion", hyperparameters=("learning_rate", "b1", "b2", "weight_decay"))
def lion(
    learning_rate: Numbers, b1: Numbers = 0.9, b2: Numbers = 0.99, *, weight_decay: Numbers = 0.0
) -> Optimizer:
    """Lion, sign descent on an interpolation between memory and gradient.

        W <- W - learning_rate sign(b1 m + (1 - b1) grad L(W)),  m <- b2 m + (1 - b2) grad L(W)

    It is ``optax.lion``, with weight decay added to the gradient. With ``b1 = b2`` it is
    ``sign_momentum``, with ``b1 = 0`` sign descent. Source: Chen et al., *Symbolic
    Discovery of Optimization Algorithms* (arXiv 2302.06675).

    Args:
        learning_rate: The size of every entry of a step, positive; or a schedule of it.
        b1: Share of the memory in the step, in [0, 1).
        b2: What remains of the memory after a step, in [0, 1).
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """
    return with_rescaled_state(
        optax.chain(optax.scale_by_lion(b1, b2), optax.scale_by_learning_rate(learning_rate)),
        geometry=Lp(math.inf),
        by="entry",
        settings={"learning_rate": learning_rate, "b1": b1, "b2": b2},
        weight_decay=weight_decay,
    )


@register_optimizer(
    "Adam", "adam", hyperparameters=("learning_rate", "b1", "b2", "eps", "weight_decay")
)
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


def _averaged(
    direction: optax.GradientTransformation, learning_rate: Number, decay: Number, **declared: Any
) -> Optimizer:
    """A step along a direction made of the moving average of gradients."""
    return with_rescaled_state(
        optax.chain(
            optax.ema(decay, debias=False),
            direction,
            optax.scale_by_learning_rate(learning_rate),
        ),
        settings={"learning_rate": learning_rate, "decay": decay},
        **declared,
    )


def _uncorrected(b1: Number, b2: Number, eps: Number) -> optax.GradientTransformation:
    """``m / (sqrt(v) + eps)``, with the state of ``optax.scale_by_adam``."""
    corrected = optax.scale_by_adam(b1, b2, eps)

    def update(updates: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        _, state = corrected.update(updates, state, params)
        steps = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), state.mu, state.nu)
        return steps, state

    return optax.GradientTransformation(corrected.init, update)
