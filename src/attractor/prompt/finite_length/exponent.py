"""The exponent at which errors of long prompts decay, averaged over Gaussian queries."""

from __future__ import annotations

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.errors import InvalidInputError
from attractor.precision import LARGEST, as_float64


def error_exponent(horizon: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns the exponent ``alpha`` of the squared error, ``L^(-alpha + o(1))``.

    Averaged over Gaussian queries, of Gaussian tokens, with the horizon
    ``H = ||Gamma^(1/2) U Gamma_z^(1/2)||`` in the operator norm,

        alpha(H) = 1                            for H <= 1 / sqrt(2)
        alpha(H) = (sqrt(1 + 4 / H^2) - 1) / 2  beyond

    This follows from the heuristic that the error at score variance ``tau log L`` decays with
    exponent ``1 - tau``, ``(1 - tau / 2)^2 / (2 tau)`` and 0, for ``tau`` up to 2/3, up to 2 and
    beyond. It agrees with the exact integrals but is no theorem. Corrections by powers of
    ``log L`` die out so slowly that local slopes differ from it at any length in use;
    ``averaged_output_error`` has them.

    Args:
        horizon: Horizons, at least 0.

    Raises:
        InvalidInputError: If a horizon is negative.
    """
    H = as_float64("horizon", horizon, largest=LARGEST)
    if (H < 0).any():
        raise InvalidInputError(
            "horizon", f"{H.min():.6g} is negative", "Give an operator norm, at least 0"
        )
    slow = np.maximum(H, np.sqrt(0.5))
    # (sqrt(1 + x) - 1) / 2 for small x = 4 / H^2, without the difference
    return np.where(H * H <= 0.5, 1.0, 2 / slow**2 / (np.sqrt(1 + 4 / slow**2) + 1))
