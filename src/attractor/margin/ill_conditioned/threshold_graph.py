"""The pairs of the norms with p = 1 and p = inf, of entries and of singular values."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.geometry import Lp, Schatten
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.graph import Graph, Point
from attractor.margin.semidefinite.smoothed_norm import NuclearPoint, SpectralPoint
from attractor.margin.semidefinite.soft_threshold import Threshold
from attractor.margin.smooth.norm_expansions import EntrywiseExpansions, SingularFrame

_FLATTEST = 1e-12
"""Least slope of a threshold, and of what it leaves."""


class ThresholdGraph(Graph):
    """One of the two matrices is the soft threshold of ``Z = W + scale M``, corners rounded off.

    It is W for p = 1, and for p = inf it is M, at a level that makes ``||M||_dual`` one.
    """

    dual_norm = 1.0

    def __init__(
        self, geometry: Lp | Schatten, constraints: Constraints, W: Float[np.ndarray, "d e"]
    ) -> None:
        """Chooses the scale for matrices like W."""
        self._left, self._right = constraints.left[None], constraints.right[None]
        self._entrywise, self._summed = isinstance(geometry, Lp), geometry.p == 1
        sizes = np.abs(W) if self._entrywise else np.linalg.svd(W, compute_uv=False)
        self._scale = float(sizes.mean() if self._summed else sizes.size * sizes.max())
        self._width = self._scale if self._summed else sizes.size**-2.0

    def coordinate(
        self, W: Float[np.ndarray, "d e"], M: Float[np.ndarray, "d e"]
    ) -> Float[np.ndarray, "d e"]:
        """``W + scale M``."""
        return W + self._scale * M

    def at(self, Z: Float[np.ndarray, "d e"], area: float, residual: float) -> Point:
        """The pair that Z stands for."""
        return self._of_entries(Z, area) if self._entrywise else self._of_values(Z, area)

    def _of_entries(self, Z: Float[np.ndarray, "d e"], area: float) -> Point:
        order = np.argsort(-np.abs(Z), axis=None)
        w, m, threshold = self._split(np.abs(Z).ravel()[order], area)
        level, factor = self._level(threshold)
        weights = self._weights(threshold.slope[0])
        sorted_back = np.empty((4, Z.size))
        sorted_back[:, order] = w, m, level, weights
        W, M, spike, diagonal = sorted_back.reshape(4, *Z.shape)
        sign = np.copysign(1.0, Z)
        frame = EntrywiseExpansions(self._left, self._right)
        return Point(sign * W, sign * M, frame, diagonal[None], (sign * spike)[None], factor)

    def _of_values(self, Z: Float[np.ndarray, "d e"], area: float) -> Point:
        U, y, V = np.linalg.svd(Z)
        V = V.T
        n = len(y)
        w, m, threshold = self._split(y, area)
        level, factor = self._level(threshold)
        slopes = self._weights(threshold.ratios()[0])
        weights, spike = np.zeros((2, 1, *Z.shape))
        weights[0, :n, :n] = np.triu(slopes[:, :n]) + np.tril(slopes[:, n : 2 * n], -1)
        weights[0, n:, :n], weights[0, :n, n:] = slopes[:, -1], slopes[:, -1:]
        spike[0, np.arange(n), np.arange(n)] = level
        frame = SingularFrame(U[None], V[None], self._left @ U, self._right @ V)
        U, V = U[:, :n], V[:, :n].T
        return Point((U * w) @ V, (U * m) @ V, frame, weights, spike, factor)

    def _split(
        self, y: Float[np.ndarray, "n"], area: float
    ) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"], Threshold]:
        """The sizes of W and M that make falling sizes y of Z, and the threshold they come from."""
        scale, width = np.array([self._scale]), np.array([area * self._width])
        no_vectors = np.broadcast_to(0.0, (1, len(y), len(y)))
        kind = NuclearPoint if self._summed else SpectralPoint
        point = kind.at((no_vectors, y[None], no_vectors), scale, width)
        return point.w[0], point.m[0], point.threshold

    def _weights(self, slopes: np.ndarray) -> np.ndarray:
        """Changes of W by those of M, where the threshold has such slopes."""
        rest = 1 - slopes
        numerator, denominator = (slopes, rest) if self._summed else (rest, slopes)
        return self._scale * np.maximum(numerator, 0.0) / np.maximum(denominator, _FLATTEST)

    def _level(self, threshold: Threshold) -> tuple[Float[np.ndarray, "n"], float]:
        """How W moves with the level of the threshold, and how fast M moves the level."""
        if self._summed:
            return np.zeros(threshold.x.shape[-1]), 0.0
        level, slope = threshold.level_slopes(np.full((1, 1), _FLATTEST))
        return level[0], 1 / max(float(slope[0]) / self._scale, _FLATTEST)
