"""Student's t: tails too heavy for attention over infinitely many tokens."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.prompts.measures.arithmetic.arrays import checked_dimension, checked_positive
from attractor.prompts.measures.contract import Measure, as_numpy
from attractor.support.errors import InvalidInputError


class StudentT(Measure):
    """``c G sqrt(n / S)`` for standard Gaussian ``G`` in R^d and ``S`` of a chi-squared law.

    ``E exp(a^T X)`` is infinite for every direction but zero, so that only finite prompts of such
    tokens have attention. At zero the mean is 0 for ``n > 1`` and the covariance
    ``c^2 n / (n - 2) I`` for ``n > 2``; they are NaN, and infinite or NaN, for heavier tails.

    Attributes:
        degrees_of_freedom: ``n``.
        scale: ``c``.
    """

    degrees_of_freedom: Float[Any, ""]
    _dimension: int = eqx.field(static=True)
    scale: Float[Any, ""]

    def __init__(
        self,
        degrees_of_freedom: Float[Any, ""] | Any,
        dimension: int,
        scale: Float[Any, ""] | Any = 1.0,
    ) -> None:
        """Checks and stores degrees of freedom, dimension and scale.

        Raises:
            InvalidInputError: If degrees of freedom or scale are not numbers above 0, or the
                dimension is not an integer >= 1.
        """
        self.degrees_of_freedom = checked_positive("degrees_of_freedom", degrees_of_freedom)
        self._dimension = checked_dimension(dimension)
        self.scale = checked_positive("scale", scale)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return jnp.where(self._exists(direction), 0.0, jnp.nan)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        there = self._exists(direction) & (self.degrees_of_freedom > 1)
        return jnp.where(there[..., None], jnp.zeros_like(direction), jnp.nan)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        n = jnp.asarray(self.degrees_of_freedom)
        variance = self.scale**2 * jnp.where(n > 2, n / jnp.where(n > 2, n - 2, 1), jnp.inf)
        there = (self._exists(direction) & (n > 1))[..., None, None]
        # Zero times an infinite variance would be NaN off the diagonal.
        diagonal = jnp.where(jnp.eye(self.dimension, dtype=bool), variance, 0.0)
        return jnp.where(there, diagonal, jnp.nan)

    def _covariance_product(
        self, direction: Float[Array, "*batch d"], vector: Float[Array, "*batch d"]
    ) -> Float[Array, "*rows d"]:
        return (self._tilted_covariance(direction) @ vector[..., None])[..., 0]

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return (direction == 0).all(-1)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        if not direction.any():
            return None
        return InvalidInputError(
            "measure",
            "Student's t has no exponential moment, whatever the degrees of freedom, so that "
            "attention over infinitely many tokens does not exist",
            "Give tokens with lighter tails, or a finite prompt: "
            "Empirical(measure.sample(length, seed=0))",
        )

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        n = as_numpy(self.degrees_of_freedom)
        directions = random.normal(size=(count, self.dimension))
        lengths = np.sqrt(n / random.chisquare(n, size=(count, 1)))
        return as_numpy(self.scale) * directions * lengths
