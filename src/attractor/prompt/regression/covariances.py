"""Covariances of inputs that the literature uses."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.errors import InvalidInputError


def kac_murdock_szego(dimension: int, correlation: float) -> Float[np.ndarray, "d d"]:
    """The Kac-Murdock-Szego covariance: correlations that decay with distance.

    ``Sigma_ij = correlation^|i - j|``.

    Args:
        dimension: Number of inputs.
        correlation: Between neighbors, strictly between -1 and 1.

    Raises:
        InvalidInputError: If the dimension is not a positive integer, or the matrix would not be
            positive definite.
    """
    if isinstance(dimension, bool) or not isinstance(dimension, (int, np.integer)) or dimension < 1:
        raise InvalidInputError(
            "dimension", f"it is {dimension!r}", "Give the number of inputs, a positive integer"
        )
    if not -1 < correlation < 1:
        raise InvalidInputError(
            "correlation", f"it is {correlation!r}", "Give a number strictly between -1 and 1"
        )
    places = np.arange(dimension)
    return float(correlation) ** np.abs(places[:, None] - places)
