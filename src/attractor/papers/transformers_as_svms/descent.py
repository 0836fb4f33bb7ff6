"""Training of the experiments, exact and as in the published code."""

from __future__ import annotations

from typing import Any

import numpy as np

from attractor.geometry import Frobenius, Geometry, Nuclear
from attractor.training import normalized_gradient_descent

GEOMETRIES: dict[str, Geometry] = {"W": Frobenius(), "KQ": Nuclear()}
"""In which norm training of each parameterization is predicted to have the largest margin."""
ROLES = {"W": ("frobenius", "train_W"), "KQ": ("nuclear", "train_KQ")}
"""Roles in which that solution and the training are drawn."""
LEARNING_RATE = 0.1
ROUNDING = float(np.finfo(np.float64).eps)
"""Constant that the published code adds to norms; also the weight of its penalty on K and Q."""


def descent(
    parameterization: str, *, decay: bool = False, as_published: bool = False
) -> dict[str, Any]:
    """The arguments of ``train`` for normalized gradient descent with steps of length 0.1.

    Keys and queries are normalized one by one. The published code divides by
    ``||gradient|| + 2.2e-16``, takes gradients that cancel in a saturated softmax, and adds
    ``2.2e-16 (||K||^2 + ||Q||^2)`` to the loss of keys and queries.

    Args:
        parameterization: ``"W"`` or ``"KQ"``.
        decay: Whether to add that penalty, with what is added to norms: it lets steps of constant
            length converge.
        as_published: Whether to train keys and queries with it, and either with gradients and
            norms of the published code.
    """
    factors = parameterization == "KQ"
    options: dict[str, Any] = {"per_factor": True} if factors else {}
    if as_published or decay:
        options["eps"] = ROUNDING
    if decay or (as_published and factors):
        options["weight_decay"] = 2 * ROUNDING  # the gradient of the penalty is twice the weight
    return {
        "optimizer": normalized_gradient_descent(LEARNING_RATE, **options),
        "parameterization": parameterization,
        "kernel": "plain" if as_published else "exact",
    }
