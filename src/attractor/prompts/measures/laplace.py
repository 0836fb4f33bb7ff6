"""Laplace tokens, whose exponential moments are finite in a box alone."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Bool, Complex, Float

from attractor.prompts.measures.arithmetic.arrays import checked_dimension, checked_positive
from attractor.prompts.measures.contract import as_numpy
from attractor.prompts.measures.products import Continued, IndependentCoordinates
from attractor.support.errors import InvalidInputError


class Laplace(IndependentCoordinates):
    """Coordinates of density ``exp(-|x| / b) / (2 b)``, tilted mean ``2 b^2 a / (1 - b^2 a^2)``.

    ``E exp(a^T X)`` is finite only where every ``|a_i| b < 1``. Beyond, attention over infinitely
    many tokens does not exist: over a finite prompt it follows the largest token.

    Attributes:
        scale: ``b``.
    """

    scale: Float[Any, ""]
    _dimension: int = eqx.field(static=True)

    def __init__(self, scale: Float[Any, ""] | Any, dimension: int) -> None:
        """Checks and stores scale and dimension.

        Raises:
            InvalidInputError: If the scale is not a number above 0, or the dimension not an
                integer >= 1.
        """
        self.scale = checked_positive("scale", scale)
        self._dimension = checked_dimension(dimension)

    @property
    def _scale(self) -> Float[Any, ""]:
        return self.scale

    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        inside = jnp.abs(slope) < 1
        x = jnp.where(inside, slope, 0)
        rest = (1 - x) * (1 + x)
        value = (-jnp.log1p(-x * x), 2 * x / rest, 2 * (1 + x * x) / rest**2)[order]
        return jnp.where(inside, value, jnp.nan)

    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        rest = (1 - z) * (1 + z)
        return -np.log(rest), 2 * z / rest, 2 * (1 + z * z) / rest**2

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        rates, powers = np.array([1 - slope, 1 + slope]), 2 * np.arange(5)
        shares = rates[::-1] / 2  # of the two sides
        return scipy.special.factorial(powers) * (shares / rates ** powers[:, None]).sum(-1)

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return (jnp.abs(direction) * self.scale < 1).all(-1)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        scale = float(self.scale)
        beyond = np.abs(direction) * scale >= 1
        if not beyond.any():
            return None
        entry = direction[beyond][0]
        return InvalidInputError(
            "direction",
            f"an entry is {entry:g}, and exp({entry:g} x) has no finite mean for Laplace tokens of "
            f"scale {scale:g}",
            f"Give entries between -{1 / scale:g} and {1 / scale:g}, or a finite prompt: "
            "Empirical(measure.sample(length, seed=0))",
        )

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        return random.laplace(scale=as_numpy(self.scale), size=(count, self.dimension))
