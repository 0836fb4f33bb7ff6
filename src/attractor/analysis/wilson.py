"""Wilson's interval of a share, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from jaxtyping import Float


def wilson_interval(
    successes: Float[Any, "*values"], trials: Float[Any, "*values"], confidence: float
) -> Float[np.ndarray, "*values 2"]:
    """Both ends of Wilson's interval of a share; NaN of no trials.

    With ``p = k/n`` and the quantile z, the interval is
    ``(2np + z^2 +- z sqrt(4np(1 - p) + z^2)) / (2(n + z^2))`` (Newcombe 1998, method 3).

    Args:
        successes: Counts k.
        trials: Out of how many, n.
        confidence: Of the interval, between 0 and 1.
    """
    k, n = np.broadcast_arrays(*(np.asarray(of, dtype=float) for of in (successes, trials)))
    z = scipy.special.ndtri(0.5 + 0.5 * confidence)
    share = np.divide(k, n, out=np.full(n.shape, np.nan), where=n > 0)
    twice = 2 * (n + z**2)
    center = (2 * n * share + z**2) / twice
    half = z / twice * np.sqrt(4 * n * share * (1 - share) + z**2)
    low, high = np.where(k == 0, 0.0, center - half), np.where(k == n, 1.0, center + half)
    return np.where((n > 0)[..., None], np.stack([low, high], axis=-1), np.nan)
