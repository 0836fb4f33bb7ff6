"""The pairs of the l_p norms of entries and singular values, for 1 < p < inf."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.geometry import Lp, Schatten
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.graph import Graph, Point
from attractor.margin.smooth.norm_expansions import (
    EntrywiseExpansions,
    SingularValueExpansions,
    kept_curvature,
)

_FIRST_EXPONENT = 3.0
"""Exponent at area one; it grows as the area falls."""
_LEAST_CURVATURE = 1e-12


class PowerGraph(Graph):
    """Either matrix is the gradient of half the squared norm, or dual norm, of the other.

    The one of the two stands for the pair whose norm has the larger exponent, and with it a
    bounded second derivative: W for p > 2, M for p < 2. An exponent far from two is approached
    while the area falls.
    """

    dual_norm = None

    def __init__(self, geometry: Lp | Schatten, constraints: Constraints) -> None:
        """Takes the norm and the constraints."""
        kind = SingularValueExpansions if isinstance(geometry, Schatten) else EntrywiseExpansions
        self._expansions = kind(constraints.left[None], constraints.right[None])
        self._by_W = geometry.p > 2
        self._exponent = geometry.p if self._by_W else geometry.q

    def coordinate(
        self, W: Float[np.ndarray, "d e"], M: Float[np.ndarray, "d e"]
    ) -> Float[np.ndarray, "d e"]:
        """One of the two."""
        return W if self._by_W else M

    def at(self, Z: Float[np.ndarray, "d e"], area: float, residual: float) -> Point:
        """The pair that Z stands for."""
        exponent = min(self._exponent, _FIRST_EXPONENT / np.sqrt(area))
        exponents, residuals = (np.full((1, 1, 1), number) for number in (exponent, residual))
        expansion = self._expansions.at(Z[None], exponents)
        curvature = kept_curvature(expansion, exponents, residuals, _LEAST_CURVATURE)
        excess, normal = exponent - 2, expansion.normal
        if not self._by_W:
            return Point(expansion.gradient[0], Z, expansion.frame, curvature, normal, -excess)
        along = normal / curvature
        factor = excess / (1 - excess * float((along * normal).sum()))
        return Point(Z, expansion.gradient[0], expansion.frame, 1 / curvature, along, factor)
