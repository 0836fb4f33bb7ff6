"""Linear systems in batches, in which one singular matrix does not fail the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float


def inverses(matrices: Float[np.ndarray, "k m m"]) -> Float[np.ndarray, "k m m"]:
    """Inverses; NaN where a matrix is singular."""
    return _apart(np.linalg.inv, matrices)


def solutions(
    matrices: Float[np.ndarray, "k m m"], right: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, "k m"]:
    """Solutions of square systems; NaN where a matrix is singular."""
    return _apart(np.linalg.solve, matrices, right[..., None])[..., 0]


def _apart(compute: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Computes on a batch, or where that fails on its halves."""
    try:
        return compute(*arrays)
    except np.linalg.LinAlgError:
        if len(arrays[0]) == 1:
            return np.full(arrays[-1].shape, np.nan)
    half = len(arrays[0]) // 2
    parts = [[a[:half] for a in arrays], [a[half:] for a in arrays]]
    return np.concatenate([_apart(compute, *part) for part in parts])
