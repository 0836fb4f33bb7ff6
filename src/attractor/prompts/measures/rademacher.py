"""Random signs."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
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


class Rademacher(IndependentCoordinates):
    """Coordinates ``+c`` or ``-c``, each with probability one half.

    The tilted mean is ``c tanh(c a_i)``, the variance ``c^2 sech^2(c a_i)``: attention saturates.

    Attributes:
        scale: ``c``.
    """

    _dimension: int = eqx.field(static=True)
    scale: Float[Any, ""]

    def __init__(self, dimension: int, scale: Float[Any, ""] | Any = 1.0) -> None:
        """Checks and stores dimension and scale.

        Raises:
            InvalidInputError: If the dimension is not an integer >= 1, or the scale not a number
                above 0.
        """
        self._dimension = checked_dimension(dimension)
        self.scale = checked_positive("scale", scale)

    @property
    def _scale(self) -> Float[Any, ""]:
        return self.scale

    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        return (_log_cosh, _tanh, _squared_sech)[order](slope)

    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        z, sign = rightward(z)
        decayed = np.exp(-2 * z)
        slope = -np.expm1(-2 * z) / (1 + decayed)
        return z + np.log1p(decayed) - np.log(2), sign * slope, 4 * decayed / (1 + decayed) ** 2

    def _variance_proxy(self) -> float:
        return float(self.scale) ** 2  # cosh(x) <= exp(x^2 / 2)

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        return np.ones(5)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        signs = random.integers(2, size=(count, self.dimension)) * 2.0 - 1.0
        return as_numpy(self.scale) * signs


def _squared_sech(x: Float[Array, "..."]) -> Float[Array, "..."]:
    # Not 1 - tanh^2, which is zero where tanh rounds to one.
    return 4 * jax.nn.sigmoid(2 * x) * jax.nn.sigmoid(-2 * x)


_tanh = with_derivative(jnp.tanh, _squared_sech)


def _direct_log_cosh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    x = jnp.abs(x)
    near = jnp.log1p(2 * jnp.sinh(jnp.minimum(x, 1) / 2) ** 2)
    return jnp.where(x < 1, near, x + jnp.log1p(jnp.expm1(-2 * x) / 2))


_log_cosh = with_derivative(_direct_log_cosh, _tanh)
