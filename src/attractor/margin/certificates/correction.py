"""Small corrections of a matrix that make it meet constraints to the last digits."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.batching.batches import inner_products, solutions
from attractor.margin.batching.scaling import ScaledConstraints

_MOST_ROUNDS = 8
_ROUNDING = np.finfo(np.float64).eps
_RIDGE = 1e-12
"""Keeps constraints that repeat others from making the system singular; rounds make up for it."""


def meet_constraints(
    scaled: ScaledConstraints,
    W: Float[np.ndarray, "k d e"],
    active: Bool[np.ndarray, "k m"] | None = None,
) -> Float[np.ndarray, "k d e"]:
    """W, corrected where scaling cannot: by the least norm that meets what it falls short of.

    Instances that have only constraints ``a^T W b >= c`` with c > 0 are returned as they are.
    """
    fixed = scaled.equality if active is None else scaled.equality | active
    needy = np.flatnonzero((fixed | (scaled.inequality & (scaled.bounds <= 0))).any(-1))
    if not needy.size:
        return W
    W = W.copy()
    part = scaled.choose(needy)
    gram = part.left @ np.swapaxes(part.left, -1, -2)
    gram *= part.right @ np.swapaxes(part.right, -1, -2)
    fixed = held = fixed[needy]
    size = np.sqrt(inner_products(W[needy], W[needy]))[:, None]
    for _ in range(_MOST_ROUNDS):  # each instance until it is met, whatever the others need
        short = part.bounds - part.margins(W[needy])
        short = np.where(fixed, short, np.where(part.inequality, np.maximum(short, 0.0), 0.0))
        held = held | (short > 0)
        open_ = ~(np.abs(short) <= _ROUNDING * size).all(-1)
        if not open_.any():
            break
        matrix = np.where(held[:, :, None] & held[:, None], gram, 0.0)
        diagonal = np.einsum("ijj->ij", matrix)
        diagonal += np.where(held, _RIDGE, 1.0)
        x = solutions(matrix, short)
        W[needy[open_]] += part.combine(np.where(np.isfinite(x), x, 0.0))[open_]
    return W
