"""Proximal points of the norms of entries and singular values, and how they move.

The proximal point of Z minimizes ``tau ||W|| + 1/2 ||W - Z||_F^2``. For an l_p norm of the entries
it acts on their absolute values, for one of the singular values on those; its derivative there is
a diagonal plus a rank-one matrix, whatever p is. So it is for the nearest point of a ball.

In the sum of the norms of blocks, each block has a proximal point of its own. In their maximum the
blocks are projected on balls, whose radii ``t / c_b`` follow from one level t with

    sum_b h_b / c_b = tau,   h_b = ||Z_b - W_b||_b*,

where ``h_b`` falls as t grows, at a rate that is known as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy
from jaxtyping import Float

from attractor.geometry import (
    BlockMaximum,
    BlockSum,
    Geometry,
    Lp,
    Schatten,
    singular_value_decomposition,
)
from attractor.geometry.blocks import Piece
from attractor.geometry.exponent import conjugate_exponent

_NEWTON_STEPS = 12
_TIED = 1e-12
"""Difference of singular values, relative to the largest, that is rounding."""
_ROOT_STEPS = 80
_ROUNDING = 2 * np.finfo(np.float64).eps


@runtime_checkable
class ProximalPoint(Protocol):
    """The proximal point of a matrix, and the derivative of the map there."""

    @property
    def W(self) -> Float[np.ndarray, "d e"]:
        """The proximal point."""
        ...

    @property
    def norm(self) -> float:
        """Its norm."""
        ...

    def derivative(self, H: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch d e"]:
        """Derivatives of W along matrices H."""
        ...


def proximal_point(Z: Float[np.ndarray, "d e"], tau: float, geometry: Geometry) -> ProximalPoint:
    """The proximal point of Z in a norm of entries or singular values, or of blocks in these."""
    if isinstance(geometry, BlockMaximum):
        return MaximumPoint.of(Z, tau, geometry)
    if isinstance(geometry, BlockSum):
        return SumPoint.of(Z, tau, geometry)
    return ValuesPoint.of(Z, tau, geometry)


@dataclass(frozen=True)
class Values:
    """The absolute entries of a matrix, or its singular values.

    Attributes:
        sizes: The values, none negative.
        basis: Singular vectors on either side, as columns; None where values are entries.
        signs: Those of the entries, None where values are singular.
    """

    sizes: Float[np.ndarray, "r"]
    basis: tuple[np.ndarray, np.ndarray] | None
    signs: np.ndarray | None

    @classmethod
    def of(cls, Z: Float[np.ndarray, "d e"], geometry: Geometry) -> Values:
        """Those whose norm the geometry takes."""
        if isinstance(geometry, Schatten) and geometry.p != 2:
            left, sizes, right = singular_value_decomposition(Z)
            return cls(sizes, (left, right.T), None)
        return cls(np.abs(Z).ravel(), None, np.where(Z < 0, -1.0, 1.0))

    def matrix(self, values: Float[np.ndarray, "r"]) -> Float[np.ndarray, "d e"]:
        """The matrix with others in their place."""
        if self.basis is None:
            assert self.signs is not None
            return self.signs * values.reshape(self.signs.shape)
        left, right = self.basis
        return (left * values) @ right.T

    def along(self, H: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch r"]:
        """Derivatives of the values along matrices."""
        if self.basis is None:
            return (self.signs * H).reshape(*H.shape[:-2], -1)
        left, right = self.basis
        return np.diagonal(left.T @ H @ right, axis1=-2, axis2=-1)


@dataclass(frozen=True)
class Slope:
    """A matrix ``diag(diagonal) + sign bump bump^T``."""

    diagonal: Float[np.ndarray, "r"]
    bump: Float[np.ndarray, "r"]
    sign: float

    def __call__(self, h: Float[np.ndarray, "*batch r"]) -> Float[np.ndarray, "*batch r"]:
        """Its products with vectors."""
        return self.diagonal * h + self.sign * self.bump * (h @ self.bump)[..., None]


def derivative_of(
    values: Values, after: Float[np.ndarray, "r"], slope: Slope, H: Float[np.ndarray, "*batch d e"]
) -> Float[np.ndarray, "*batch d e"]:
    """Derivative of the map that puts other values in the place of those of a matrix.

    Args:
        values: Of the matrix.
        after: What they become.
        slope: Derivative of what they become.
        H: The directions.
    """
    if values.basis is None:
        return values.signs * slope(values.along(H)).reshape(H.shape)
    left, right = values.basis
    image = left.T @ H
    core = image @ right
    turned_core = np.swapaxes(core, -1, -2)
    even, odd = (core + turned_core) / 2, (core - turned_core) / 2
    s, w = values.sizes, after
    apart = s[:, None] - s
    tied = np.abs(apart) <= _TIED * s[0]
    ratio = np.where(tied, slope.diagonal[:, None], (w[:, None] - w) / np.where(tied, 1, apart))
    total = s[:, None] + s
    turned = even * ratio + odd * (w[:, None] + w) / np.where(total > 0, total, 1.0)
    diagonal = np.arange(len(s))
    turned[..., diagonal, diagonal] = slope(np.diagonal(core, axis1=-2, axis2=-1))
    result = left @ turned @ right.T
    shrunk = w / np.where(s > 0, s, 1.0)
    if len(left) > len(s):
        outside = H @ right - left @ core
        result += (outside * shrunk) @ right.T
    elif len(right) > len(s):
        outside = image - core @ right.T
        result += (left * shrunk) @ outside
    return result


@dataclass(frozen=True)
class ValuesPoint:
    """The proximal point in a norm of entries or singular values."""

    W: Float[np.ndarray, "d e"]
    norm: float
    _values: Values
    _after: np.ndarray
    _slope: Slope

    @classmethod
    def of(cls, Z: Float[np.ndarray, "d e"], tau: float, geometry: Geometry) -> ValuesPoint:
        """Evaluates the map."""
        values = Values.of(Z, geometry)
        after, diagonal, bump = proximal_values(values.sizes, tau, _exponent(geometry))
        W = values.matrix(after)
        return cls(W, float(geometry.norm(W)), values, after, Slope(diagonal, bump, 1.0))

    def derivative(self, H: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch d e"]:
        """Derivatives of W along matrices H."""
        return derivative_of(self._values, self._after, self._slope, H)


@dataclass(frozen=True)
class SumPoint:
    """The proximal point in a sum of the norms of blocks."""

    W: Float[np.ndarray, "d e"]
    norm: float
    _points: list[tuple[Piece, ValuesPoint]]

    @classmethod
    def of(cls, Z: Float[np.ndarray, "d e"], tau: float, geometry: BlockSum) -> SumPoint:
        """Evaluates the map."""
        W, points = np.empty_like(Z), []
        for piece in geometry.pieces(Z.shape):
            place = piece.rows, piece.columns
            point = ValuesPoint.of(Z[place], tau * piece.weight, piece.geometry)
            W[place] = point.W
            points.append((piece, point))
        return cls(W, float(sum(piece.weight * point.norm for piece, point in points)), points)

    def derivative(self, H: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch d e"]:
        """Derivatives of W along matrices H."""
        moved = np.empty_like(H)
        for piece, point in self._points:
            place = ..., piece.rows, piece.columns
            moved[place] = point.derivative(H[place])
        return moved


@dataclass(frozen=True)
class MaximumPoint:
    """The proximal point in a maximum of the norms of blocks.

    Attributes:
        W: The proximal point.
        norm: Its norm, the level t.
    """

    W: Float[np.ndarray, "d e"]
    norm: float
    _parts: list[tuple[Piece, Values, Projection]]
    _fall: float

    @classmethod
    def of(cls, Z: Float[np.ndarray, "d e"], tau: float, geometry: BlockMaximum) -> MaximumPoint:
        """Evaluates the map: Newton's method for the level, between bounds."""
        pieces = geometry.pieces(Z.shape)
        values = [Values.of(Z[piece.rows, piece.columns], piece.geometry) for piece in pieces]
        W = np.zeros_like(Z)
        if float(geometry.dual_norm(Z)) <= tau:
            none = [Projection.on_zero(one.sizes) for one in values]
            return cls(W, 0.0, [*zip(pieces, values, none, strict=True)], 0.0)
        balls = [
            Balls(one.sizes, _exponent(piece.geometry))
            for piece, one in zip(pieces, values, strict=True)
        ]
        weights = [piece.weight for piece in pieces]
        reached: list[Reached] = []
        falls = [0.0]

        def excess(level: float) -> tuple[float, float]:
            reached[:] = [
                ball.reach(level / weight) for ball, weight in zip(balls, weights, strict=True)
            ]
            weighed = [*zip(weights, reached, strict=True)]
            falls[0] = sum(one.fall / weight**2 for weight, one in weighed)
            return sum(one.distance / weight for weight, one in weighed) - tau, falls[0]

        level = _root(excess, 0.0, float(geometry.norm(Z)), rounding=tau)
        found = [one.projection() for one in reached]
        for piece, one, projection in zip(pieces, values, found, strict=True):
            W[piece.rows, piece.columns] = one.matrix(projection.after)
        return cls(W, level, [*zip(pieces, values, found, strict=True)], falls[0])

    def derivative(self, H: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch d e"]:
        """Derivatives of W along matrices H: in every block, and with the level."""
        moved, pull = np.empty_like(H), np.zeros(H.shape[:-2])
        for piece, values, projection in self._parts:
            place = ..., piece.rows, piece.columns
            moved[place] = derivative_of(values, projection.after, projection.slope, H[place])
            pull = pull + values.along(H[place]) @ projection.by_radius / piece.weight
        if self._fall > 0:
            rise = pull / self._fall
            for piece, values, projection in self._parts:
                push = values.matrix(projection.by_radius) / piece.weight
                moved[..., piece.rows, piece.columns] += rise[..., None, None] * push
        return moved


@dataclass(frozen=True)
class Projection:
    """The nearest point of an l_p ball to non-negative values.

    Attributes:
        after: The nearest point.
        slope: Its derivative in the values.
        by_radius: Its derivative in the radius.
    """

    after: Float[np.ndarray, "r"]
    slope: Slope
    by_radius: Float[np.ndarray, "r"]

    @classmethod
    def on_zero(cls, z: Float[np.ndarray, "r"]) -> Projection:
        """On the ball of radius zero."""
        zero = np.zeros_like(z)
        return cls(zero, Slope(zero, zero, 1.0), zero)


class Reached(NamedTuple):
    """How far values lie from a ball.

    Attributes:
        distance: Dual norm h of what is taken off, the derivative of half the squared distance.
        fall: ``-dh / dr``.
        projection: Gives the nearest point, which the search for a level has no need of.
    """

    distance: float
    fall: float
    projection: Callable[[], Projection]


@dataclass(frozen=True)
class Balls:
    """The l_p balls around zero, and non-negative values to be projected on them.

    Attributes:
        z: The values.
        p: The exponent.
    """

    z: Float[np.ndarray, "r"]
    p: float

    @cached_property
    def length(self) -> float:
        """The l_p norm of the values."""
        return vector_norm(self.z, self.p)

    @cached_property
    def falling(self) -> Float[np.ndarray, "r"]:
        """The values in descending order."""
        return np.sort(self.z)[::-1]

    @cached_property
    def sums(self) -> Float[np.ndarray, "r"]:
        """Sums of the largest values, up to each."""
        return self.falling.cumsum()

    def reach(self, radius: float) -> Reached:
        """How far the values lie from the ball of a radius above zero."""
        if self.length <= radius:
            return Reached(0.0, 0.0, self._inside)
        if np.isinf(self.p):
            return self._reach_of_largest(radius)
        return self._reach_of_sum(radius) if self.p == 1 else self._reach_of_power(radius)

    def _inside(self) -> Projection:
        zero = np.zeros_like(self.z)
        return Projection(self.z, Slope(np.ones_like(self.z), zero, -1.0), zero)

    def _reach_of_largest(self, radius: float) -> Reached:
        z = self.z
        cut = z > radius

        def projection() -> Projection:
            slope = Slope(np.where(cut, 0.0, 1.0), np.zeros_like(z), -1.0)
            return Projection(np.minimum(z, radius), slope, cut.astype(float))

        return Reached(float((z[cut] - radius).sum()), float(cut.sum()), projection)

    def _reach_of_sum(self, radius: float) -> Reached:
        z = self.z
        levels = (self.sums - radius) / np.arange(1, len(z) + 1)
        last = _last_above(self.falling, levels)
        distance, above = float(levels[last]), z >= self.falling[last]
        total = float(np.count_nonzero(above))

        def projection() -> Projection:
            gradient = np.where(above, 1.0, 0.0)
            slope = Slope(gradient, gradient / np.sqrt(total), -1.0)
            return Projection(np.maximum(z - distance, 0.0), slope, gradient / total)

        return Reached(distance, 1 / total, projection)

    def _reach_of_power(self, radius: float) -> Reached:
        """Where 1 < p < inf.

        With ``z = w + h g``, g the gradient of the norm at w, ``dz = A dw - kappa g dr + g dh``
        where A is diagonal, ``kappa = h (p - 1) / r``, and ``g . dw = dr``.
        """
        z, p = self.z, self.p
        with np.errstate(divide="ignore"):
            distance = self.length - radius if p == 2 else _distance(z, radius, p)
            after = radius * _unit_values(z, distance, p, radius)
            unit = after / radius
            kappa = distance * (p - 1) / radius
            inverse = 1 / (1 + kappa * unit ** (p - 2))
        gradient = unit ** (p - 1)
        curved = inverse * gradient
        total = float(curved @ gradient)

        def projection() -> Projection:
            slope = Slope(inverse, curved / np.sqrt(total), -1.0)
            return Projection(after, slope, curved / total)

        return Reached(distance, 1 / total - kappa, projection)


def vector_norm(z: Float[np.ndarray, "r"], p: float) -> float:
    """The l_p norm of non-negative numbers."""
    largest = float(z.max(initial=0.0))
    if np.isinf(p) or largest == 0:
        return largest
    return largest * float(((z / largest) ** p).sum()) ** (1 / p)


def _distance(z: Float[np.ndarray, "r"], radius: float, p: float) -> float:
    """The h with ``||w||_p = r`` where ``w + h (w / r)^(p-1) = z``."""

    def excess(h: float) -> tuple[float, float]:
        s = _unit_values(z, h, p, radius)
        power = s ** (p - 1)
        steep = power * power / (radius + h * (p - 1) * s ** (p - 2))
        return float(np.add.reduce(power * s) - 1), float(p * np.add.reduce(steep))

    most = vector_norm(z, conjugate_exponent(p))
    return _root(excess, 1e-15 * most, most, rounding=1.0)


def _last_above(falling: Float[np.ndarray, "r"], levels: Float[np.ndarray, "r"]) -> int:
    """The last place of a number above its level; the first, where rounding hides that it is."""
    return int(np.flatnonzero(falling > levels)[-1:].sum())


def _root(
    falling: Callable[[float], tuple[float, float]], low: float, high: float, rounding: float
) -> float:
    """Where a falling function is zero, by Newton's method between bounds.

    Args:
        falling: Gives the value, and how fast it falls.
        low: A lower bound.
        high: An upper bound.
        rounding: Size of the numbers that the function is a difference of.
    """
    x = (low + high) / 2
    for _ in range(_ROOT_STEPS):
        value, fall = falling(x)
        if abs(value) <= _ROUNDING * rounding:
            break
        low, high = (x, high) if value > 0 else (low, x)
        ahead = x + value / fall if fall > 0 else low
        ahead = ahead if low < ahead < high else (low + high) / 2
        if abs(ahead - x) <= _ROUNDING * x:
            break
        x = ahead
    return x


def _exponent(geometry: Geometry) -> float:
    """That of the norm of its values."""
    return geometry.p if isinstance(geometry, (Lp, Schatten)) else 2.0


def proximal_values(
    z: Float[np.ndarray, "r"], tau: float, p: float
) -> tuple[Float[np.ndarray, "r"], Float[np.ndarray, "r"], Float[np.ndarray, "r"]]:
    """The proximal point of non-negative z for ``tau ||.||_p``.

    Returns:
        The point w, and the D and v of the derivative ``diag(D) + v v^T``.
    """
    zero = np.zeros_like(z)
    if p == 1:
        return np.maximum(z - tau, 0.0), np.where(z > tau, 1.0, 0.0), zero
    if np.isinf(p):
        if z.sum() <= tau:
            return zero, zero, zero
        falling = np.sort(z)[::-1]
        levels = (np.cumsum(falling) - tau) / np.arange(1, len(z) + 1)
        level = levels[_last_above(falling, levels)]
        cut = z >= level
        return np.minimum(z, level), np.where(cut, 0.0, 1.0), cut / np.sqrt(cut.sum())
    if p == 2:
        length = vector_norm(z, 2)
        if length <= tau:
            return zero, zero, zero
        share = tau / length
        return (1 - share) * z, np.full_like(z, 1 - share), np.sqrt(share) * z / length
    q = conjugate_exponent(p)
    scale = z.max(initial=0.0)
    if scale == 0 or scale * ((z / scale) ** q).sum() ** (1 / q) <= tau:
        return zero, zero, zero
    # With w = N s and ||s||_p = 1, stationarity is N s + tau s^(p-1) = z; ||s||_p falls with N.
    most = scale * ((z / scale) ** p).sum() ** (1 / p)

    def excess(norm: float) -> float:
        return float((_unit_values(z, tau, p, norm) ** p).sum() - 1)

    least = most * 1e-12
    norm = scipy.optimize.brentq(excess, least, most, xtol=1e-15 * most)
    assert isinstance(norm, float)
    s = _unit_values(z, tau, p, norm)
    with np.errstate(divide="ignore"):
        stiffness = 1 + tau * (p - 1) / norm * s ** (p - 2)
    b = np.sqrt(tau * (p - 1) / norm) * s ** (p - 1)
    rest = max(1 - float((b**2 / stiffness).sum()), np.finfo(np.float64).tiny)
    return norm * s, 1 / stiffness, b / stiffness / np.sqrt(rest)


def _unit_values(
    z: Float[np.ndarray, "r"], tau: float, p: float, norm: float
) -> Float[np.ndarray, "r"]:
    """The s with ``norm s + tau s^(p-1) = z``, by Newton's method from above."""
    if p >= 2:
        linear, bent, power = norm, tau, p - 1
    else:  # in terms of y = s^(p-1) the equation is convex
        linear, bent, power = tau, norm, 1 / (p - 1)
    if power == 2:
        y = 2 * z / (linear + np.sqrt(linear**2 + 4 * bent * z))
        return y if p >= 2 else y**2
    y = np.minimum(z / linear, (z / bent) ** (1 / power))
    for _ in range(_NEWTON_STEPS):
        steep = bent if power == 1 else bent * y ** (power - 1)
        slope = linear + power * steep
        y = np.maximum(y - (linear * y + steep * y - z) / slope, 0.0)
    return y if p >= 2 else y ** (1 / (p - 1))
