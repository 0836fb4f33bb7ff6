"""The displacement over the last decade of gradient descent, compared with a margin solution.

A matrix that grows like ``W_mm log t`` beside a part that stays bounded turns like ``1 / log t``;
what a decade of steps adds is free of the bounded part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attractor.corpora import direction_distance
from attractor.papers import Measurement

DECADES = (20, 2_000, 20_000)
"""Steps to record: an early one, and both ends of the last decade."""


def last_decade(
    matrices: Sequence[Float[np.ndarray, "m n"]], direction: Float[np.ndarray, "m n"]
) -> Measurement:
    """``1 - cos`` of a direction and what the last decade adds.

    Args:
        matrices: The matrix at each of ``DECADES``.
        direction: The direction, as long as the matrix grows per unit of ``log t``.
    """
    _, before, after = matrices
    added = (after - before) / np.log(DECADES[-1] / DECADES[-2])
    details = {
        "norm added per unit of log t, over that of the direction": float(
            np.linalg.norm(added) / np.linalg.norm(direction)
        ),
        "1 - cos of W itself": float(direction_distance(after, direction)),
    }
    return Measurement(float(direction_distance(added, direction)), 1, details)
