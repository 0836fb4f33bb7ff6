"""The law of the score variance over Gaussian queries, by its saddle points.

With the singular values ``sigma_i`` of ``Gamma^(1/2) U Gamma_z^(1/2)`` the score variance of a
query is ``s^2 = sum_i sigma_i^2 zeta_i^2`` for independent standard normal ``zeta_i``. In units of
the largest ``sigma_i^2`` it is ``x = sum_i r_i zeta_i^2`` with ``r_i`` up to 1, and

    K(theta) = log E exp(theta x) = -1/2 sum_i log(1 - 2 theta r_i)

The density is the integral of ``exp(K(theta) - theta x) / (2 pi i)`` along a contour through the
saddle point ``K'(theta) = x``. On a hyperbola that opens to the right every factor decays, whatever
the ``r_i`` are, and the trapezoidal rule is exact to ten digits, far into both tails.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

_BISECTIONS = 50
_SLOPE = np.tan(np.pi / 6)
_STEP = 0.1
_STEPS = 56


class Saddle(NamedTuple):
    """Saddle points of some variances.

    Attributes:
        u: ``1 - 2 theta``, which is 1 at the mean variance and falls to 0.
        variance: The variances ``x``.
        rate: The rate function ``theta x - K(theta)``: no more than ``exp(-rate)`` of the queries
            have a variance beyond ``x``, as seen from the mean.
        spread: ``K''(theta)``.
    """

    u: Float[np.ndarray, "*shape"]
    variance: Float[np.ndarray, "*shape"]
    rate: Float[np.ndarray, "*shape"]
    spread: Float[np.ndarray, "*shape"]


class ScoreVariance(NamedTuple):
    """The law of ``x``.

    Attributes:
        squares: The different ``r_i > 0``.
        counts: How many directions have each.
    """

    squares: Float[np.ndarray, "scale"]
    counts: Float[np.ndarray, "scale"]

    @classmethod
    def of(cls, singular_values: Float[np.ndarray, "d"]) -> ScoreVariance:
        """For singular values that are not all zero."""
        squares = (singular_values / singular_values.max()) ** 2
        squares, counts = np.unique(squares[squares > 0], return_counts=True)
        return cls(squares, counts.astype(float))

    def at(self, u: Float[ArrayLike, "*shape"]) -> Saddle:
        """The saddle points with some ``1 - 2 theta > 0``."""
        u = np.asarray(u, dtype=float)
        left = self.left(u)
        ratio = self.squares / left
        variance = ratio @ self.counts
        return Saddle(
            u,
            variance,
            (np.log(left) @ self.counts + (1 - u) * variance) / 2,
            2 * ratio**2 @ self.counts,
        )

    def saddle(self, variance: Float[ArrayLike, "*shape"]) -> Saddle:
        """The saddle points of some variances ``x > 0``."""
        x = np.asarray(variance, dtype=float)
        # x is between the largest of counts / u and their sum over u.
        low, high = np.log(self.counts[-1] / x), np.log(self.counts.sum() / x)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            larger = (self.squares / self.left(np.exp(middle))) @ self.counts > x
            low, high = np.where(larger, middle, low), np.where(larger, high, middle)
        return self.at(np.exp((low + high) / 2))

    def densities(
        self, variance: Float[np.ndarray, "*shape"], gains: Float[np.ndarray, "scale"]
    ) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
        """The density of ``x``, and that times the mean of ``sum_i gains_i zeta_i^2`` given ``x``.

        Args:
            variance: Values of ``x``.
            gains: For each scale; a ``zeta_i^2`` for all of its directions.
        """
        at = self.saddle(variance)
        v = _STEP * np.arange(_STEPS)
        width = 1 / np.sqrt(at.spread)[..., None]
        shift = width * (1j * np.sinh(v) + _SLOPE * (np.cosh(v) - 1))
        velocity = width * (np.cosh(v) - 1j * _SLOPE * np.sinh(v))  # of the shift over i
        left = self.left(at.u)
        grown = 1 - 2 * shift[..., None] * (self.squares / left)[..., None, :]
        exponent = -(np.log(grown) @ self.counts) / 2 - shift * at.variance[..., None]
        integrand = velocity * np.exp(exponent - at.rate[..., None])
        weights = np.where(v == 0, 0.5, 1.0) * _STEP / np.pi
        squares = ((gains / left)[..., None, :] / grown).sum(-1)
        return integrand.real @ weights, (integrand * squares).real @ weights

    def left(self, u: Float[ArrayLike, "*shape"]) -> Float[np.ndarray, "*shape scale"]:
        """``1 - 2 theta r_i``."""
        return (1 - self.squares) + np.asarray(u)[..., None] * self.squares
