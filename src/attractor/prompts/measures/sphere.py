"""Tokens uniform on a sphere: attention is along the direction, and its gain is not constant."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from attractor.prompts.measures.arithmetic import bessel
from attractor.prompts.measures.arithmetic.arrays import checked_dimension, checked_positive
from attractor.prompts.measures.contract import Measure, as_numpy
from attractor.prompts.measures.generating import Generated, ScoreLine, from_cumulants
from attractor.support.errors import InvalidInputError


class Sphere(Measure):
    """The uniform law on the sphere of radius ``r`` in R^d.

    The tilted mean is ``r I_{d/2}(r |a|) / I_{d/2-1}(r |a|) a / |a|``. Its covariance is the
    identity for ``r = sqrt(d)``, and yet attention is not linear.

    Attributes:
        radius: ``r``.
    """

    _dimension: int = eqx.field(static=True)
    radius: Float[Any, ""]

    def __init__(self, dimension: int, radius: Float[Any, ""] | Any) -> None:
        """Checks and stores dimension and radius.

        Raises:
            InvalidInputError: If the dimension is not an integer >= 2, or the radius not a number
                above 0.
        """
        self._dimension = checked_dimension(dimension)
        if dimension == 1:
            raise InvalidInputError(
                "dimension", "it is 1, where a sphere is two points", "Give Rademacher(1, radius)"
            )
        self.radius = checked_positive("radius", radius)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return bessel.log_ascending(self._order, self._square(direction))

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        gain = self.radius**2 * bessel.ratio(self._order, self._square(direction))
        return gain[..., None] * direction

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        ratio = partial(bessel.ratio, self._order)
        square = self._square(direction)
        gain, slope = jax.jvp(ratio, (square,), (jnp.ones_like(square),))
        outer = direction[..., :, None] * direction[..., None, :]
        across = self.radius**2 * gain[..., None, None] * jnp.eye(self.dimension)
        return across + 2 * self.radius**4 * slope[..., None, None] * outer

    def _generated(self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]) -> Generated:
        radius, d = float(self.radius), self.dimension
        a, P, c = line
        length = float(np.linalg.norm(a))
        along = P @ a / (length or 1.0)
        log_value, ratio = bessel.continued(self._order, radius * length * q)
        gain = radius**2 * ratio * q  # the tilted mean is gain a
        # Every token has the same length, so that the trace of their covariance is known.
        spread = radius**2 - (gain * length) ** 2
        across = radius**2 * ratio
        return from_cumulants(
            log_value - q * (a @ c),
            gain * (P @ a)[:, None, None] - (P @ c)[:, None, None],
            across * ((P**2).sum() - along @ along) + (spread - (d - 1) * across) * (along @ along),
        )

    def _variance_proxy(self) -> float:
        # Term by term E exp(a^T X) is at most exp(r^2 |a|^2 / (2 d)).
        return float(self.radius) ** 2 / self.dimension

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        return float(self.radius) ** (2.0 * np.arange(5))

    def _square(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return ((self.radius * direction) ** 2).sum(-1)

    @property
    def _order(self) -> float:
        return self._dimension / 2 - 1

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        directions = random.normal(size=(count, self.dimension))
        lengths = np.linalg.norm(directions, axis=-1, keepdims=True)
        return as_numpy(self.radius) * directions / lengths
