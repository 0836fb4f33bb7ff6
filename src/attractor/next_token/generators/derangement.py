"""Random collocations without a token that follows itself."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from attractor.errors import InvalidInputError

MOST_TOKENS = 10**6
"""The largest vocabulary, and the longest sentence, that are drawn."""


def derangement(size: int, generator: np.random.Generator) -> tuple[Int[np.ndarray, "V"], int]:
    """A uniformly random permutation without fixed points, and how many draws had one.

    Raises:
        InvalidInputError: If there are fewer than two tokens.
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2:
        raise InvalidInputError("vocabulary", f"it is {size!r}", "Give two tokens or more")
    redrawn = 0
    while True:
        drawn = generator.permutation(size)
        if (drawn != np.arange(size)).all():
            return drawn, redrawn
        redrawn += 1
