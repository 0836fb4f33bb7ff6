"""The central path of problems on graphs: centering, and the graph that steps follow."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Lp, Schatten
from attractor.margin.batching import extended
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.orthogonal_factor import OrthogonalFactor
from attractor.margin.semidefinite.smoothed_norm import NuclearPoint, SpectralPoint
from attractor.margin.semidefinite.soft_threshold import Threshold
from attractor.margin.smooth.norm_expansions import (
    EntrywiseExpansions,
    Frame,
    SingularFrame,
    SingularValueExpansions,
    kept_curvature,
)

_MOST_STEPS = 30
_NEAR = 0.01
"""Newton decrement, in units of ``||W||``, at which to stop."""
_LEAST_SLACK = 1e-3
"""Slack to start from, beside the largest bound that forces W from zero, where there is none."""
_REACH = 0.9
_ROUNDS = 3
"""Solutions of a system, each of what is left of the one before."""


def centered(
    constraints: Constraints,
    W: Float[np.ndarray, "d e"],
    multipliers: Float[np.ndarray, "m"],
    share: float,
) -> tuple[extended.Pair, Float[np.ndarray, "m"]]:
    """Multipliers and slacks whose products are all near ``share ||W||^2 / m``.

    Where constraints nearly contradict each other, multipliers and slacks differ by many orders
    of magnitude from one constraint to the next. At a centered point they are of the size that
    suits each constraint, in the Frobenius norm and so, within small factors, in any other.

    Args:
        constraints: The constraints.
        W: The Frobenius solution.
        multipliers: With ``W = sum_j multipliers_j a_j b_j^T``.
        share: Sum of the products, in units of ``||W||^2``.
    """
    c, inequality = constraints.bounds, constraints.inequality
    square = float(np.sum(W**2))
    mu = share * square / max(int(inequality.sum()), 1)
    size = np.sqrt(square * np.einsum("mn,mn->m", constraints.rows, constraints.rows))
    forcing = np.where(inequality, np.maximum(c, 0.0), np.abs(c)).max()
    slack = np.maximum(-constraints.shortfall(c, (W, np.zeros_like(W))), _LEAST_SLACK * forcing)
    inactive = multipliers <= 0
    high = np.where(inactive, mu / slack, np.maximum(multipliers, mu / size))
    x = np.where(inequality, high, multipliers), np.zeros_like(c)
    s = np.where(inequality, mu / np.where(inequality, x[0], 1.0), 0.0)
    for _ in range(_MOST_STEPS):
        positive = np.where(inequality, x[0], 1.0)
        goal = np.where(inequality, mu / positive, 0.0)
        ratio = s / positive
        factor = OrthogonalFactor.of(constraints.rows, ratio)
        rest = short = constraints.shortfall(c + goal, constraints.combine_exactly(x))
        dx = np.zeros_like(c), np.zeros_like(c)
        for _ in range(_ROUNDS):  # what is large in a residual hides what is small
            dx = extended.add(dx, factor.solve(short), 0.0)
            moved = constraints.combine_exactly(extended.add(x, *dx))
            short = constraints.shortfall(c + goal, moved) - ratio * dx[0]
        ds = np.where(inequality, goal - s - ratio * dx[0], 0.0)
        length = longest_step(inequality, (positive, dx[0]), (s, ds), _REACH)
        x, s = extended.add(x, *times(length, dx)), s + length * ds
        if float(np.sum(factor.half(rest) ** 2)) <= _NEAR**2 * square:
            break
    return x, s


def longest_step(
    inequality: Bool[np.ndarray, "m"],
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    reach: float,
) -> float:
    """The longest step, at most one, that goes a share of the way to where a number vanishes.

    Args:
        inequality: Which numbers have to stay positive.
        first: Numbers and their changes.
        second: Likewise.
        reach: The share.
    """
    rates = [-change[inequality] / numbers[inequality] for numbers, change in (first, second)]
    fastest = np.max(np.concatenate(rates), initial=0.0)
    return float(min(1.0, reach / max(fastest, reach)))


def times(length: float, pair: extended.Pair) -> extended.Pair:
    """A pair times a number."""
    high, low = extended.two_product(np.full_like(pair[0], length), pair[0])
    return high, low + length * pair[1]


_FIRST_EXPONENT = 3.0
"""Exponent at area one; it grows as the area falls."""
_LEAST_CURVATURE = 1e-12
_FLATTEST = 1e-12
"""Least slope of a threshold, and of what it leaves."""


@dataclass(frozen=True)
class Point:
    """A pair, and the tangent there: ``dW = T(dM)``, ``T = diag(weights) + factor g g^T``.

    Attributes:
        W: The matrix.
        M: The subgradient.
        frame: Orthonormal coordinates, for a batch of one.
        weights: The diagonal in the frame.
        spike: The g in the frame.
        factor: Its weight, of either sign.
    """

    W: Float[np.ndarray, "d e"]
    M: Float[np.ndarray, "d e"]
    frame: Frame
    weights: Float[np.ndarray, "1 d e"]
    spike: Float[np.ndarray, "1 d e"]
    factor: float

    def move(self, dM: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"]:
        """``T(dM)``."""
        inside = self.frame.enter(dM[None])
        along = self.factor * float((self.spike * inside).sum())
        return self.frame.leave(self.weights * inside + along * self.spike)[0]

    def root(self) -> Float[np.ndarray, "m n"]:
        """B with ``B B^T`` the inner products ``<a_i b_i^T, T(a_j b_j^T)>``."""
        rows = self.frame.coordinates()[0]
        rows = rows.reshape(len(rows), -1)
        spike, roots = self.spike.ravel(), np.sqrt(self.weights).ravel()
        if self.factor >= 0:
            column = np.sqrt(self.factor) * (rows @ spike)
            return np.hstack([rows * roots, column[:, None]])
        rows = rows * roots
        unit = np.where(roots > 0, spike / np.where(roots > 0, roots, 1.0), 0.0)
        square = float(unit @ unit)
        if square == 0:
            return rows
        # I + factor u u^T is the square of I - beta u u^T.
        beta = (1 - np.sqrt(max(1 + self.factor * square, 0.0))) / square
        return rows - beta * np.outer(rows @ unit, unit)


class Graph(abc.ABC):
    """The pairs of one norm."""

    dual_norm: float | None
    """Dual norm of M; None if it is ``||W||``."""

    @abc.abstractmethod
    def coordinate(
        self, W: Float[np.ndarray, "d e"], M: Float[np.ndarray, "d e"]
    ) -> Float[np.ndarray, "d e"]:
        """The Z of a pair, or that of changes of a pair."""

    @abc.abstractmethod
    def at(self, Z: Float[np.ndarray, "d e"], area: float, residual: float) -> Point:
        """The pair of Z.

        Args:
            Z: The matrix.
            area: Smoothing of the norm: below one, and zero in the end.
            residual: Residual of the conditions for optimality.
        """


class PowerGraph(Graph):
    """Either matrix is the gradient of half the squared norm, or dual norm, of the other.

    Z is the one of the two whose norm has the larger exponent, and with it a
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
        """The pair of Z."""
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
        """The pair of Z."""
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
        """Change of W with the level of the threshold, and of the level with M."""
        if self._summed:
            return np.zeros(threshold.x.shape[-1]), 0.0
        level, slope = threshold.level_slopes(np.full((1, 1), _FLATTEST))
        return level[0], 1 / max(float(slope[0]) / self._scale, _FLATTEST)
