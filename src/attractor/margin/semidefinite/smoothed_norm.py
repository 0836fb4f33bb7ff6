"""Points and tangents on the smoothed graph of the subdifferential of two norms.

W is the smallest matrix of its margins when the combination M of the constraints is a subgradient
of the norm at W. For the nuclear and the spectral norm the pairs (W, M) that fit are those with
common singular vectors whose singular values fit: ``w_i (1 - m_i) = 0`` with ``m_i <= 1``, or
``m_i (t - w_i) = 0`` with ``w_i <= t`` and ``sum m_i = 1``. Each pair is met once by the sum
``Y = W + scale M``, which makes W, or M, a soft threshold of Y. Rounding the two corners of the
threshold off to hyperbolas (Chen and Harker 1993, Kanzow 1996) makes the graph a smooth manifold,
and its tangents are known in closed form: in the bases of singular vectors they act on pairs of
entries ``(i, j)`` and ``(j, i)`` apart from all others.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from attractor.margin.semidefinite.soft_threshold import Threshold

Factors: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A thin singular value decomposition: U, singular values, V^T."""

_MOST_LEVEL_STEPS = 50


@dataclass(frozen=True)
class Tangent:
    """The tangent at a point: ``dW = D(dM) + dt U diag(g) V^T``.

    Matrices are ``p x q`` with ``p >= q``.

    Attributes:
        left: Left singular vectors U.
        right: Right singular vectors V.
        own: Weight of entry (i, j) in entry (i, j) of D.
        crossed: Weight of entry (j, i) in entry (i, j) of D.
        rest: Weight of column j beyond the span of U.
        level: The direction g of W with the level t of the threshold; None if t is fixed.
        level_slope: ``g . diag(U^T dM V) = level_slope dt`` along the graph.
    """

    left: Float[np.ndarray, "k p q"]
    right: Float[np.ndarray, "k q q"]
    own: Float[np.ndarray, "k q q"]
    crossed: Float[np.ndarray, "k q q"]
    rest: Float[np.ndarray, "k q"]
    level: Float[np.ndarray, "k q"] | None = None
    level_slope: Float[np.ndarray, "k"] | None = None

    def move(self, dM: Float[np.ndarray, "k p q"]) -> Float[np.ndarray, "k p q"]:
        """The map D."""
        columns = dM @ self.right
        core = np.swapaxes(self.left, -1, -2) @ columns
        moved = self.left @ (core * self.own + np.swapaxes(core, -1, -2) * self.crossed)
        if self.left.shape[-2] > self.left.shape[-1]:
            moved += (columns - self.left @ core) * self.rest[:, None]
        return moved @ np.swapaxes(self.right, -1, -2)

    def raise_level(self, dt: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k p q"]:
        """Change of W with the level of the threshold."""
        assert self.level is not None
        scaled = self.left * (self.level * dt[:, None])[:, None]
        return scaled @ np.swapaxes(self.right, -1, -2)

    def gram(
        self,
        left: Float[np.ndarray, "k m p"],
        right: Float[np.ndarray, "k m q"],
        left_gram: Float[np.ndarray, "k m m"],
    ) -> tuple[Float[np.ndarray, "k m m"], Float[np.ndarray, "k m"] | None]:
        """``<a_i b_i^T, D(a_j b_j^T)>``, and ``<a_j b_j^T, U diag(g) V^T>`` if the level moves.

        Args:
            left: Rows a.
            right: Rows b.
            left_gram: ``a_i^T a_j``.
        """
        count, m, q = right.shape
        a, b = left @ self.left, right @ self.right
        outer = a[..., :, None] * b[..., None, :]
        moved = outer * self.own[:, None]
        moved += np.swapaxes(outer, -1, -2) * self.crossed[:, None]
        flat = outer.reshape(count, m, q * q)
        gram = flat @ np.swapaxes(moved.reshape(count, m, q * q), -1, -2)
        if left.shape[-1] > q:
            beyond = left_gram - a @ np.swapaxes(a, -1, -2)
            beyond *= (b * self.rest[:, None]) @ np.swapaxes(b, -1, -2)
            gram += beyond
        column = None if self.level is None else ((a * b) @ self.level[..., None])[..., 0]
        return gram, column


@dataclass(frozen=True)
class GraphPoint(abc.ABC):
    """A pair (W, M) on the smoothed graph, with common singular vectors.

    Attributes:
        left: Left singular vectors.
        right: Right singular vectors.
        w: Singular values of W.
        m: Singular values of M.
        scale: Weight of M in Y.
        threshold: The soft threshold that made them.
    """

    left: Float[np.ndarray, "k p q"]
    right: Float[np.ndarray, "k q q"]
    w: Float[np.ndarray, "k q"]
    m: Float[np.ndarray, "k q"]
    scale: Float[np.ndarray, "k"]
    threshold: Threshold

    @property
    def W(self) -> Float[np.ndarray, "k p q"]:
        """The matrix."""
        return (self.left * self.w[:, None]) @ np.swapaxes(self.right, -1, -2)

    @property
    def M(self) -> Float[np.ndarray, "k p q"]:
        """The smoothed subgradient."""
        return (self.left * self.m[:, None]) @ np.swapaxes(self.right, -1, -2)

    @property
    @abc.abstractmethod
    def norm(self) -> Float[np.ndarray, "k"]:
        """The norm of W."""

    @property
    @abc.abstractmethod
    def dual_norm(self) -> Float[np.ndarray, "k"]:
        """The dual norm of M."""

    @abc.abstractmethod
    def tangent(self, flattest: Float[np.ndarray, "k"]) -> Tangent:
        """The tangent.

        Args:
            flattest: Least slope of the threshold, and of what it leaves, to be used.
        """

    def _through(
        self, numerator: np.ndarray, denominator: np.ndarray, least: np.ndarray
    ) -> Tangent:
        """The tangent with given slopes between i and j, -j and 0: stacked, in this order."""
        q = self.w.shape[-1]
        slopes = self.scale[:, None, None] * numerator
        slopes /= np.maximum(denominator, least[:, None, None])
        same, opposite = slopes[..., :q], slopes[..., q : 2 * q]
        return Tangent(
            left=self.left,
            right=self.right,
            own=0.5 * (same + opposite),
            crossed=0.5 * (same - opposite),
            rest=slopes[..., -1],
        )


class NuclearPoint(GraphPoint):
    """A point for the nuclear norm: W is the threshold of Y, at the level ``scale``."""

    @classmethod
    def at(
        cls, factors: Factors, scale: Float[np.ndarray, "k"], width: Float[np.ndarray, "k"]
    ) -> NuclearPoint:
        """The point with a given sum.

        Args:
            factors: Singular value decomposition of ``W + scale M``.
            scale: Weight of M.
            width: ``w_i (1 - m_i)`` is about this: the area under the hyperbolas.
        """
        left, y, right = factors
        threshold = Threshold.of(y, scale[:, None], (scale * width)[:, None])
        w = threshold.value
        m = (y - w) / scale[:, None]
        return cls(left, np.swapaxes(right, -1, -2), w, m, scale, threshold)

    @property
    def norm(self) -> Float[np.ndarray, "k"]:
        """The nuclear norm of W."""
        return self.w.sum(-1)

    @property
    def dual_norm(self) -> Float[np.ndarray, "k"]:
        """The spectral norm of M."""
        return self.m[:, 0]

    def tangent(self, flattest: Float[np.ndarray, "k"]) -> Tangent:
        """The tangent."""
        ratios = self.threshold.ratios()
        return self._through(ratios, 1 - ratios, flattest)


class SpectralPoint(GraphPoint):
    """A point for the spectral norm: M is the threshold of ``Y / scale``."""

    @classmethod
    def at(
        cls, factors: Factors, scale: Float[np.ndarray, "k"], width: Float[np.ndarray, "k"]
    ) -> SpectralPoint:
        """The point with a given sum; ``m_i (t - w_i)`` is about ``scale width``.

        The level t solves ``sum_i kappa_i = 1``, with the smoothed multipliers kappa of
        ``-t <= w_i <= t`` that make the threshold the gradient of a convex function.
        """
        left, y, right = factors
        x, area = y / scale[:, None], width[:, None]
        # The level without rounding off, from which Newton's method rises to the one sought.
        counts = np.arange(1, x.shape[-1] + 1)
        level = ((x.cumsum(-1) - 1) / counts).max(-1, keepdims=True)
        level = np.maximum(level, 0.0)
        rising = np.ones_like(level, dtype=bool)
        for _ in range(_MOST_LEVEL_STEPS):
            threshold = Threshold.of(x, level, area)
            excess = (0.5 * (threshold.near + threshold.far) - level).sum(-1, keepdims=True) - 1
            step = excess / np.maximum(threshold.slope.sum(-1, keepdims=True), 1e-8)
            level = np.where(rising, np.maximum(level + step, 0.0), level)
            rising &= np.abs(step) > 1e-15 + 1e-14 * level
            if not rising.any():
                break
        threshold = Threshold.of(x, level, area)
        m = threshold.value
        w = scale[:, None] * (x - m)
        return cls(left, np.swapaxes(right, -1, -2), w, m, scale, threshold)

    @property
    def norm(self) -> Float[np.ndarray, "k"]:
        """The spectral norm of W."""
        return self.w[:, 0]

    @property
    def dual_norm(self) -> Float[np.ndarray, "k"]:
        """The nuclear norm of M."""
        return self.m.sum(-1)

    def tangent(self, flattest: Float[np.ndarray, "k"]) -> Tangent:
        """The tangent, along which the level moves as well."""
        t = self.threshold
        ratios = t.ratios()
        fixed = self._through(1 - ratios, ratios, flattest)
        level, level_slope = t.level_slopes(flattest[:, None])
        return replace(fixed, level=level, level_slope=level_slope / self.scale)
