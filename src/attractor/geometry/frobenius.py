"""The Frobenius geometry: that of gradient descent on the attention matrix itself."""

from __future__ import annotations

import math
from typing import Any

from jaxtyping import Float

from attractor.geometry.contract import OneGeometry
from attractor.geometry.registry import register_geometry


@register_geometry
class Frobenius(OneGeometry):
    """The Frobenius norm ``sqrt(sum W_ij^2)``, which is its own dual.

    (Normalized) gradient descent on W descends in it, and its margin problem is the Att-SVM of
    *Transformers as Support Vector Machines* (arXiv 2308.16898).

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> at.Frobenius().norm(np.array([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0
    """

    name = "frobenius"
    unique = True
    unitarily_invariant = True
    spelling = "frobenius"

    def norm(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The norm ``sqrt(sum W_ij^2)``, without overflow on the way."""
        xp = W.__array_namespace__()
        scale = largest_entry(xp, W)
        return scale[..., 0, 0] * xp.sqrt(xp.sum((W / scale) ** 2, axis=(-2, -1)))

    def dual_norm(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The Frobenius norm again."""
        return self.norm(G)

    def steepest_descent_direction(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """``G / ||G||_F``; zero where G is zero."""
        xp = G.__array_namespace__()
        shrunk = G / largest_entry(xp, G)
        norm = xp.sqrt(xp.sum(shrunk**2, axis=(-2, -1), keepdims=True))
        return shrunk / xp.where(norm != 0, norm, xp.ones_like(norm))

    def dual_norm_constant(self, rows: int, columns: int) -> float:
        """One, for any shape."""
        return 1.0

    def norm_rounding(self, rows: int, columns: int) -> float:
        """Squares are summed pairwise: far fewer roundings than a row and a column have entries."""
        return (rows + columns + 16) * 2.0**-53

    def distance_to_solution(self, value: float, gap: float) -> float:
        """``value sqrt(2 gap)``.

        For feasible W, ``<W - W*, W*> >= 0``, hence
        ``||W - W*||^2 <= ||W||^2 - ||W*||^2 <= 2 value^2 gap``.
        """
        return value * math.sqrt(2 * max(gap, 0.0))

    def mirror_map(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """The identity, the gradient of ``||W||_F^2 / 2``."""
        return W

    def inverse_mirror_map(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """The identity."""
        return G


def largest_entry(xp: Any, W: Any) -> Any:
    """Largest absolute entry of each matrix, one where that is zero; keeps both axes."""
    largest = xp.max(xp.abs(W), axis=(-2, -1), keepdims=True)
    return xp.where(largest > 0, largest, xp.ones_like(largest))
