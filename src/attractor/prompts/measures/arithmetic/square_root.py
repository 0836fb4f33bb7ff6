"""Square roots of covariances."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def square_root(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """A matrix ``R`` with ``R R^T`` a covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))
