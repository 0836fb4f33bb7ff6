"""Coordinates uniform on an interval around zero."""

from __future__ import annotations

from math import factorial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from attractor.prompts.measures.arithmetic.arrays import checked_dimension, checked_positive
from attractor.prompts.measures.contract import as_numpy
from attractor.prompts.measures.products import (
    Continued,
    IndependentCoordinates,
    rightward,
    with_derivative,
)

_NODES = 96
_TERMS = 12
_SINH = [1 / factorial(2 * k + 1) for k in range(_TERMS)]
"""Series of ``sinh(x) / x`` in ``x^2``."""
_SLOPE = [(2 * k + 2) / factorial(2 * k + 3) for k in range(_TERMS)]
"""Series of ``(x cosh x - sinh x) / x^3``."""
_CURVATURE = [2 ** (2 * k + 3) / factorial(2 * k + 4) for k in range(_TERMS)]
"""Series of ``(sinh^2 x - x^2) / x^4``."""


class Uniform(IndependentCoordinates):
    """Coordinates uniform on ``[-c, c]``, with the tilted mean ``c coth(c a_i) - 1 / a_i``.

    Attributes:
        half_width: ``c``.
    """

    half_width: Float[Any, ""]
    _dimension: int = eqx.field(static=True)

    def __init__(self, half_width: Float[Any, ""] | Any, dimension: int) -> None:
        """Checks and stores half-width and dimension.

        Raises:
            InvalidInputError: If the half-width is not a number above 0, or the dimension not an
                integer >= 1.
        """
        self.half_width = checked_positive("half_width", half_width)
        self._dimension = checked_dimension(dimension)

    @property
    def _scale(self) -> Float[Any, ""]:
        return self.half_width

    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        return (_log_normalizer, _slope, _curvature)[order](slope)

    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        z, sign = rightward(z)
        near = np.abs(z) < 1
        x = np.where(near, z, 0) ** 2
        far = np.where(near, 1, z)
        sinh = np.polyval(_SINH[::-1], x)  # over z
        decayed = np.exp(-2 * far)
        value = np.where(near, np.log(sinh), far - np.log(2 * far) + np.log1p(-decayed))
        slope = np.where(
            near,
            z * np.polyval(_SLOPE[::-1], x) / sinh,
            (1 + decayed) / (1 - decayed) - 1 / far,
        )
        curvature = np.where(
            near,
            np.polyval(_CURVATURE[::-1], x) / sinh**2,
            1 / far**2 - 4 * decayed / (1 - decayed) ** 2,
        )
        return value, sign * slope, curvature

    def _variance_proxy(self) -> float:
        return float(self.half_width) ** 2 / 3  # sinh(x) / x <= exp(x^2 / 6), term by term

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        x, weights = np.polynomial.legendre.leggauss(_NODES)
        weights = weights * np.exp(slope * x - abs(slope))
        return weights @ x[:, None] ** (2 * np.arange(5)) / weights.sum()

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        return as_numpy(self.half_width) * random.uniform(-1, 1, size=(count, self.dimension))


# Within one of zero, quotients of series whose terms are all positive; beyond, closed forms that
# subtract nothing of nearly the same size.


def _curvature(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``1 / x^2 - 1 / sinh^2 x``."""
    square, far = _split(x)
    sinh_squared = _series(_SINH, square) ** 2
    inverse_sinh_squared = 4 * jnp.exp(-2 * far) / jnp.expm1(-2 * far) ** 2
    inside = jnp.abs(x) < 1
    return jnp.where(inside, _series(_CURVATURE, square) / sinh_squared,
                     1 / far**2 - inverse_sinh_squared)  # fmt: skip


def _direct_slope(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``coth x - 1 / x``."""
    square, far = _split(x)
    near = x * _series(_SLOPE, square) / _series(_SINH, square)
    return jnp.where(jnp.abs(x) < 1, near, jnp.sign(x) * (1 / jnp.tanh(far) - 1 / far))


_slope = with_derivative(_direct_slope, _curvature)


def _direct_log_normalizer(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log(sinh(x) / x)``."""
    square, far = _split(x)
    near = jnp.log1p(square * _series(_SINH[1:], square))
    return jnp.where(jnp.abs(x) < 1, near, far - jnp.log(2 * far) + jnp.log1p(-jnp.exp(-2 * far)))


_log_normalizer = with_derivative(_direct_log_normalizer, _slope)


def _split(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Arguments of series and of closed forms: each harmless where the other is used."""
    size = jnp.where(x < 0, -x, x)
    return jnp.where(size < 1, x, 1) ** 2, jnp.where(size < 1, 1, size)


def _series(coefficients: list[float], square: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.polyval(jnp.array(coefficients[::-1], dtype=square.dtype), square)
