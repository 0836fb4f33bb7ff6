"""Covariances of inputs that the literature uses."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.support.checks import check_count, check_number


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
    dimension = check_count("dimension", dimension, 1, 2**14)
    correlation = check_number("correlation", correlation, above=-1.0, below=1.0, example=0.5)
    places = np.arange(dimension)
    return correlation ** np.abs(places[:, None] - places)
