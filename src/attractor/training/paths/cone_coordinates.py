"""Coordinates of W for a cone: those that scores depend on, and what the cone needs besides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.training.paths.score_map import ScoreMap

_ROUNDING = 1e-12
"""Length of a part of a unit vector that is rounding."""


class ConeCoordinates(NamedTuple):
    """Orthonormal coordinates of matrices of one norm in a cone.

    Scores depend on the part of W in a span. In a ball the rest of W is best left zero; at a
    given norm and angle it is not. Only two directions of the rest matter: that of the axis,
    and any other, in which W may spend its norm.

    Attributes:
        basis: Columns that coordinates stand for, ``(d e, k)``.
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
