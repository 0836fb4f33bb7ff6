"""Directional Bregman divergences of many trials, each from solutions of its own."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.analysis import directional_bregman_divergence
from attractor.geometry import Geometry


def divergences(
    W: Float[np.ndarray, "trial *records d e"],
    solutions: Float[np.ndarray, "trial d e"],
    geometry: Geometry,
) -> Float[np.ndarray, "trial *records"]:
    """``D(W*/||W*||, W/||W||)`` of every trial's matrices from its solution.

    Args:
        W: Matrices; those that are zero measure NaN.
        solutions: One for each trial; where it is not finite all measure NaN.
        geometry: The norm whose potential it is, not always that of the solutions.
    """
    found = [
        directional_bregman_divergence(one.reshape(-1, *one.shape[-2:]), solution, geometry)
        for one, solution in zip(W, solutions, strict=True)
    ]
    return np.stack(found).reshape(W.shape[:-2])
