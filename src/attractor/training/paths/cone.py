"""The loss over a cone around a direction, at one norm of W."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.attention.excess import TokenScores, log_rise_and_fall
from attractor.attention.losses import Loss
from attractor.geometry import Frobenius
from attractor.training.paths.balls import Ball, BallObjective
from attractor.training.paths.fixed_head import least_step, optimality_of, values_at
from attractor.training.paths.following import Place, Point, Search
from attractor.training.paths.minimize import minimize
from attractor.training.paths.score_map import ScoreMap

_APART = 1e7
"""More than the logarithm of any excess: places of lower loss than the selection come first."""
_STATIONARY = 1e-6
"""Optimality of a minimum; anything above it may lie where the excess changes its sign."""
_LEAPS = np.geomspace(1e-9, 1, 19)
"""Distances down the slope at which a loss below the selection's is looked for."""
_SHRUNK = (1.0, 1e-2, 1e-4, 1e-6, 1e-8)
"""Shares of the usual distance by which a start is moved off the edge."""
_ROUNDING = 1e-12
"""Length of a part of a unit vector that is rounding."""


class ConeData(NamedTuple):
    """One data set in one cone at one radius.

    Attributes:
        matrix: Scores of every unit coordinate matrix.
        mask: True where a token takes part.
        tokens: Token scores, measured from those of the selection.
        radius: The norm of W.
        axis: The unit vector in the middle of the cone.
        tangent: Orthonormal columns that span the rest.
        sine: Sine of the largest angle.
        side: 1 above the loss of the selection, -1 below it.
    """

    matrix: Float[Any, "sequence query token k"]
    mask: Bool[Any, "sequence query token"]
    tokens: TokenScores
    radius: Float[Any, ""]
    axis: Float[Any, "k"]
    tangent: Float[Any, "k m"]
    sine: Float[Any, ""]
    side: Float[Any, ""] = np.float64(1)


@dataclass(frozen=True)
class ConeLoss(BallObjective):
    """The loss over the cap of a sphere that a cone cuts out, seen as a ball.

    A point b of the unit ball is mapped to ``W = R (sqrt(1 - sin^2 |b|^2) axis + sin tangent b)``;
    its edge is that of the cone. What is minimized is ``log(L - L_selected)`` above the loss of
    the selection and ``-log(L_selected - L)`` below it: each falls with the loss, and is exact
    however little the two differ. Which of them, the data say.

    Attributes:
        loss: The loss.
        ball: The ball.
    """

    loss: Loss
    ball: Ball

    def at(self, b: Float[Any, "m 1"], data: ConeData) -> Float[Array, ""]:
        """The objective at a point of the ball; NaN on the other side of the selection."""
        rise, fall = self.rise_and_fall(b, data)
        above = data.side > 0
        larger, smaller = jnp.where(above, rise, fall), jnp.where(above, fall, rise)
        apart = larger > smaller
        share = jnp.where(apart, smaller - larger, -1.0)
        return data.side * jnp.where(apart, larger + jnp.log(-jnp.expm1(share)), jnp.nan)

    def rise_and_fall(
        self, b: Float[Any, "m 1"], data: ConeData
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Parts of the loss above and below that of the selection, as logarithms."""
        scores = data.radius * (data.matrix @ point_of_cone(b, data))
        return log_rise_and_fall(self.loss, scores, data.mask, data.tokens)


def point_of_cone(b: Float[Any, "m 1"], data: ConeData) -> Float[Any, "k"]:
    """The unit vector of the cone for a point of the ball."""
    across = data.sine * b[:, 0]
    return jnp.sqrt(1 - (across**2).sum()) * data.axis + data.tangent @ across


@dataclass(frozen=True)
class ConeSearch(Search):
    """Minima of the loss of one data set in a cone.

    Attributes:
        objective: What is minimized.
        data: The data set and the cone, at any radius.
        reach: How far scores change from the axis to the edge, at most, for W of norm one.
    """

    objective: ConeLoss
    data: ConeData
    reach: float

    def __call__(self, radius: float, start: Place) -> Point:
        """The local minimum that a start leads to."""
        # Above the loss of the selection log excess is minimized. Where that runs down to the loss
        # of the selection, the search goes on below it, by the logarithm of the deficit.
        above, below = self._sides(radius)
        b, count, gap, value = start[0], 0, np.inf, np.nan
        if not self._is_below(b, above):
            b, count, gap, value = self._minimum(b, above)
            if gap > _STATIONARY:
                b = self._beyond(b, radius)
        if not self._is_below(b, above):
            return Point((b,), value, value, gap, count)
        b, steps, gap, value = self._minimum(b, below)
        return Point((b,), value - _APART, np.nan, gap, count + steps)

    def values(
        self, radius: float, places: tuple[Float[np.ndarray, "place p q"], ...]
    ) -> Float[np.ndarray, "place"]:
        """Numbers in the order of the losses at many places."""
        above, below = (
            np.asarray(values_at(self.objective, places[0], data)) for data in self._sides(radius)
        )
        return np.nan_to_num(np.where(np.isnan(above), below - _APART, above), nan=np.inf)

    def log_differences(self, radius: float, place: Place) -> tuple[float, float]:
        """Logarithms of the loss above and below that of the selection; NaN for the other.

        Both are minus infinity where the losses are the same.
        """
        rise, fall = map(float, _rise_and_fall(self.objective, place[0], self._sides(radius)[0]))
        if rise == fall:
            return -np.inf, -np.inf
        size = max(rise, fall) + float(np.log(-np.expm1(-abs(rise - fall))))
        return (size, np.nan) if rise > fall else (np.nan, size)

    def norm(self, C: Float[np.ndarray, "p q"]) -> float:
        """Distance from the axis, relative to that of the edge."""
        return float(np.linalg.norm(C))

    def _sides(self, radius: float) -> tuple[ConeData, ConeData]:
        above = self.data._replace(radius=np.float64(radius), side=np.float64(1))
        return above, above._replace(side=np.float64(-1))

    def _is_below(self, b: Float[np.ndarray, "m 1"], data: ConeData) -> bool:
        rise, fall = map(float, _rise_and_fall(self.objective, b, data))
        return rise < fall

    def _minimum(
        self, b: Float[np.ndarray, "m 1"], data: ConeData
    ) -> tuple[np.ndarray, int, float, float]:
        step = least_step(float(data.radius) * self.reach)
        # Moving off the edge must not lead over to the other side of the selection.
        objective = self.objective
        lifted = (objective.ball.lift(b, step * shrunk) for shrunk in _SHRUNK)
        theta = next((one for one in lifted if np.isfinite(_value(objective, one, data))), None)
        if theta is None:
            return b, 0, np.inf, np.nan
        found = minimize(objective, theta, data)
        b = np.asarray(objective.ball.point(found.theta))
        gap, value = optimality_of(objective, Frobenius(), None, b, data)
        gap = float(np.nan_to_num(gap, nan=np.inf))
        return b, int(found.iterations), gap, float(value)

    def _beyond(self, b: Float[np.ndarray, "m 1"], radius: float) -> Float[np.ndarray, "m 1"]:
        """The lowest place down the slope from b, if the loss is below the selection's there."""
        above, _ = self._sides(radius)
        slope = np.asarray(_slope(self.objective, b, above))
        length = np.linalg.norm(slope)
        if not np.isfinite(length) or length == 0:
            return b
        there = b - _LEAPS[:, None, None] * slope / length
        there /= np.maximum(1.0, np.linalg.norm(there, axis=(1, 2), keepdims=True))
        values = self.values(radius, (there,))
        return there[values.argmin()] if values.min() < -_APART / 2 else b


_value = jax.jit(ConeLoss.__call__, static_argnums=0)
_rise_and_fall = jax.jit(ConeLoss.rise_and_fall, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
def _slope(objective: ConeLoss, b: Float[Array, "m 1"], data: ConeData) -> Float[Array, "m 1"]:
    return jax.grad(objective.at)(b, data)


class ConeCoordinates(NamedTuple):
    """Orthonormal coordinates of matrices of one norm in a cone.

    Scores depend on the part of W in a span. In a ball the rest of W is best left zero; at a
    given norm and angle it is not. Only two directions of the rest matter: that of the axis,
    and any other, in which W may spend its norm.

    Attributes:
        basis: Columns multiplied by the coordinates, ``(d e, k)``.
        matrix: Scores of every unit coordinate matrix.
        axis: The direction of the cone, a unit vector of coordinates.
        tangent: Orthonormal columns that span the rest.
    """

    basis: Float[np.ndarray, "m k"]
    matrix: Float[np.ndarray, "sequence query token k"]
    axis: Float[np.ndarray, "k"]
    tangent: Float[np.ndarray, "k l"]


def cone_coordinates(map: ScoreMap, direction: Float[np.ndarray, "d e"]) -> ConeCoordinates:
    """The coordinates for a cone around a direction.

    Args:
        map: The scores, in coordinates of the Frobenius norm.
        direction: Any matrix but zero.
    """
    size = int(np.prod(map.shape))
    units = np.eye(size).reshape(size, *map.shape)
    basis = np.stack([map.embed(C).ravel() for C in units], axis=1)
    axis = direction.ravel() / np.linalg.norm(direction)
    rest = _residual(basis, axis)
    if rest is not None:
        basis = np.column_stack([basis, rest])
    other = _any_orthogonal(basis)
    if other is not None:
        basis = np.column_stack([basis, other])
    flat = map.matrix.reshape(*map.matrix.shape[:3], size)
    missing = basis.shape[1] - size
    matrix = np.concatenate([flat, np.zeros((*flat.shape[:3], missing))], axis=-1)
    coordinates = basis.T @ axis
    coordinates /= np.linalg.norm(coordinates)
    complete, _ = np.linalg.qr(coordinates[:, None], mode="complete")
    return ConeCoordinates(basis, matrix, coordinates, complete[:, 1:])


def _residual(
    basis: Float[np.ndarray, "m k"], vector: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"] | None:
    """The unit vector of what a unit vector has outside a span; None where that is rounding."""
    left = vector - basis @ (basis.T @ vector)
    length = np.linalg.norm(left)
    if length <= _ROUNDING:
        return None
    left = left / length
    left -= basis @ (basis.T @ left)
    return left / np.linalg.norm(left)


def _any_orthogonal(basis: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m"] | None:
    """A unit vector outside a span; None where that is everything."""
    if basis.shape[1] == basis.shape[0]:
        return None
    farthest = np.zeros(len(basis))
    farthest[(basis**2).sum(1).argmin()] = 1.0
    return _residual(basis, farthest)
