"""Gradient descent with momentum: plain, normalized, and of signs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import PyTree

from attractor.geometry import Frobenius, Lp
from attractor.support.checks import check_flag
from attractor.training.optimizers.hyperparameters import Number, Numbers, hyperparameters
from attractor.training.optimizers.leaves import square_sum, unit
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.registry import register_optimizer
from attractor.training.optimizers.rescaled_state import with_rescaled_state


@register_optimizer("momentum", "heavy ball")
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
    return _momentum(learning_rate, decay, check_flag("nesterov", nesterov), weight_decay)


@register_optimizer("normalized momentum", "nsgdm")
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
    return _normalized_momentum(learning_rate, decay, weight_decay)


@register_optimizer("sign momentum", "signum")
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
    return _sign_momentum(learning_rate, decay, weight_decay)


@register_optimizer("lion")
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
    return _lion(learning_rate, b1, b2, weight_decay)


@hyperparameters("learning_rate", "decay", "weight_decay")
def _momentum(
    learning_rate: Number, decay: Number, nesterov: bool, weight_decay: Number
) -> Optimizer:
    return with_rescaled_state(
        optax.sgd(learning_rate, momentum=decay, nesterov=nesterov),
        geometry=Frobenius(),
        name="momentum",
        settings={"learning_rate": learning_rate, "decay": decay}
        | ({"nesterov": True} if nesterov else {}),
        weight_decay=weight_decay,
    )


@hyperparameters("learning_rate", "decay", "weight_decay")
def _normalized_momentum(learning_rate: Number, decay: Number, weight_decay: Number) -> Optimizer:
    def normalize(updates: PyTree, params: PyTree | None = None) -> PyTree:
        return unit(updates, square_sum, 2)

    return _averaged(
        optax.stateless(normalize),
        learning_rate,
        decay,
        geometry=Frobenius(),
        by="tree",
        name="normalized momentum",
        weight_decay=weight_decay,
    )


@hyperparameters("learning_rate", "decay", "weight_decay")
def _sign_momentum(learning_rate: Number, decay: Number, weight_decay: Number) -> Optimizer:
    return _averaged(
        optax.scale_by_sign(),
        learning_rate,
        decay,
        geometry=Lp(jnp.inf),
        by="entry",
        name="sign momentum",
        weight_decay=weight_decay,
    )


@hyperparameters("learning_rate", "b1", "b2", "weight_decay")
def _lion(learning_rate: Number, b1: Number, b2: Number, weight_decay: Number) -> Optimizer:
    return with_rescaled_state(
        optax.chain(optax.scale_by_lion(b1, b2), optax.scale_by_learning_rate(learning_rate)),
        geometry=Lp(jnp.inf),
        by="entry",
        name="Lion",
        settings={"learning_rate": learning_rate, "b1": b1, "b2": b2},
        weight_decay=weight_decay,
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
