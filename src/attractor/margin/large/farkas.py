"""Farkas multipliers from multipliers that grow without bound."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.margin.large.conjugate_gradients import FreeSystem
from attractor.margin.large.instance import LargeInstance

_VANISHED = 1e-13
"""Norm of the sum, relative to the multipliers, that is rounding."""
_ROUNDS = 12


def contradiction(
    instance: LargeInstance, x: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"] | None:
    """Multipliers that combine the constraints to zero and the bounds to more, close to x.

    What is left of ``sum x_j a_j b_j^T`` is taken out by the smallest change of the multipliers
    that are not zero. One that the change makes negative is left out of the next round.
    """
    x = x / np.abs(x).max()
    free = np.asarray(~instance.inequality | (x > 0))
    system = FreeSystem(instance.constraints, free, 0.0)
    for _ in range(_ROUNDS):
        image = instance.constraints.gram_times(x)
        change, _ = system.solve(image, np.zeros_like(x), reduction=1e-8)
        x = x - change
        negative = instance.inequality & (x < 0)
        if negative.any():
            x = np.where(negative, 0.0, x)
            free = free & ~negative
            system = FreeSystem(instance.constraints, free, 0.0)
        elif instance.farkas_residual(x) < _VANISHED:
            return x
    return None
