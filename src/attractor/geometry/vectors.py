"""Euclidean lengths and angles of arrays whose squares floating point may not hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float


def lengths(
    vectors: Float[Any, "*batch d"], *, axis: int = -1, keepdims: bool = False
) -> Float[Any, "*batch"]:
    """``sqrt(sum_i x_i^2)`` along an axis, for entries of any finite magnitude.

    Works on NumPy and JAX arrays. Where squares stay within the range, the digits are those of a
    plain sum of squares.
    """
    xp = vectors.__array_namespace__()
    factor = ordinary_factor(xp.max(xp.abs(vectors), axis=axis, keepdims=True))
    found = xp.linalg.norm(vectors * factor, axis=axis, keepdims=True) / factor
    return found if keepdims else xp.squeeze(found, axis=axis)


def cosines(
    matrices: Float[np.ndarray, "*batch d e"], direction: Float[np.ndarray, "*#batch d e"]
) -> Float[np.ndarray, "*batch"]:
    """``<W, V> / (||W|| ||V||)``, of any magnitude; NaN where either is zero or not finite."""
    W, V = in_ordinary_units(matrices), in_ordinary_units(direction)
    norms = np.linalg.norm(W, axis=(-1, -2)) * np.linalg.norm(V, axis=(-1, -2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((W * V).sum((-1, -2)) / norms)


def in_ordinary_units(matrices: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "..."]:
    """Matrices times the power of two that ``ordinary_factor`` gives each; NaN if not finite."""
    matrices = np.where(np.isfinite(matrices).all((-1, -2), keepdims=True), matrices, np.nan)
    return matrices * ordinary_factor(np.abs(matrices).max((-1, -2), keepdims=True))


def ordinary_factor(largest: Float[Any, "*batch"]) -> Float[Any, "*batch"]:
    """The power of two that brings numbers to a size whose square can be held: one for most.

    Args:
        largest: The largest magnitude of each array.
    """
    xp = largest.__array_namespace__()
    half = int(xp.finfo(largest.dtype).maxexp) // 2
    large, small = 2.0 ** (half - 12), 2.0 ** (12 - half)
    # Python numbers leave the precision of the array as it is.
    grown = xp.where((largest < small) & (largest > 0), large**2, xp.ones_like(largest))
    return xp.where(largest > large, small**2, grown)
