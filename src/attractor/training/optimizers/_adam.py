"""Adam, with and without the constant in its denominator: two algorithms."""

from __future__ import annotations

import math

import optax

from attractor.geometry import Lp
from attractor.training.optimizers.hyperparameters import Number, Numbers, hyperparameters, is_zero
from attractor.training.optimizers.optimizer import Optimizer, declare
from attractor.training.optimizers.registry import register_optimizer
from attractor.training.optimizers.rescaled_state import with_rescaled_state


@register_optimizer("adam")
def adam(
    learning_rate: Numbers,
    b1: Numbers = 0.9,
    b2: Numbers = 0.999,
    eps: Numbers = 0.0,
    *,
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
    eps it becomes gradient descent with momentum; no geometry is known for it.

    Args:
        learning_rate: The step size, positive; or a schedule of it.
        b1: What remains of the mean of gradients after a step, in [0, 1).
        b2: What remains of the mean of their squares, in [0, 1).
        eps: What is added to the denominator, zero or more.
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
    return _adam(learning_rate, b1, b2, eps, weight_decay)


@hyperparameters("learning_rate", "b1", "b2", "eps", "weight_decay")
def _adam(
    learning_rate: Number, b1: Number, b2: Number, eps: Number, weight_decay: Number
) -> Optimizer:
    transformation = optax.adam(learning_rate, b1, b2, eps)
    declared = {
        "settings": {"learning_rate": learning_rate, "b1": b1, "b2": b2, "eps": eps},
        "weight_decay": weight_decay,
    }
    if not is_zero(eps):
        return declare(transformation, geometry=None, name="Adam", **declared)
    return with_rescaled_state(
        transformation, geometry=Lp(math.inf), by="entry", name="Adam, eps = 0", **declared
    )
