"""The law of rectified normal numbers, less their mean."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from attractor.prompts.measures import Measure
from attractor.prompts.measures.arithmetic.arrays import checked_dimension

MEAN = 1 / math.sqrt(2 * math.pi)
"""Of the positive part of a standard normal number."""


class Rectified(Measure):
    """Independent coordinates ``max(g, 0) - E max(g, 0)`` of standard normal ``g``.

    ``E exp(a max(g, 0)) = 1/2 + exp(a^2 / 2) Phi(a)`` for each coordinate.
    """

    _dimension: int = eqx.field(static=True)

    def __init__(self, dimension: int) -> None:
        """Stores the number of coordinates.

        Raises:
            InvalidInputError: If it is not positive.
        """
        self._dimension = checked_dimension(dimension)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return (_log_moments(direction) - MEAN * direction).sum(-1)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return jax.grad(lambda a: self._log_normalizer(a).sum())(direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        slope = jax.grad(lambda a: self._tilted_mean(a).sum())
        return slope(direction)[..., None] * jnp.eye(self._dimension)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        return np.maximum(random.standard_normal((count, self._dimension)), 0) - MEAN


def _log_moments(a: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """``log E exp(a max(g, 0))``."""
    return jnp.logaddexp(-math.log(2), a**2 / 2 + log_ndtr(a))
