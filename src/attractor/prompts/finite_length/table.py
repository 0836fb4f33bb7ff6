"""The averages over finite prompts as smooth functions for JAX."""

from __future__ import annotations

from math import factorial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from attractor.prompts.finite_length.functions import (
    LARGEST_DEVIATION,
    check_length,
    prompt_moments,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

_SPACING = 1 / 16
_BEYOND = 6
_DEGREE = 5


class ErrorTable(eqx.Module):
    """Splines in the score deviation ``s`` through exact averages over prompts of some lengths.

    They have four continuous derivatives and a relative error below 1e-6 for ``s >= 0`` up to
    ``largest_deviation``. The results have the axes of the deviations and then those of
    ``lengths``. Beyond the table they are NaN under ``jit`` and an error elsewhere.

    Attributes:
        lengths: The lengths ``L``.
        largest_deviation: Where the table ends.
        coefficients: Of the polynomial between two knots, by function, knot and degree.
    """

    lengths: Float[np.ndarray, "*length"]
    largest_deviation: float = eqx.field(static=True)
    coefficients: Float[np.ndarray, "4 knot 6 *length"]

    def output_error(self, score_deviation: ArrayLike) -> Float[Array, "..."]:
        """Returns ``E (ghat - s)^2``, as the function of that name does."""
        return jnp.exp(self._spline(0, score_deviation))

    def sum_of_squared_weights(self, score_deviation: ArrayLike) -> Float[Array, "..."]:
        """Returns ``E sum_l p_l^2``, as the function of that name does."""
        return jnp.exp(self._spline(1, score_deviation))

    def output_second_moment(self, score_deviation: ArrayLike) -> Float[Array, "..."]:
        """Returns ``E ghat^2``, as the function of that name does."""
        # The power of s beside a factor that hardly varies: no spline follows its logarithm to 0.
        weights = self.sum_of_squared_weights(score_deviation)
        squares = self._beside_lengths(score_deviation) ** 2
        return weights + squares * self.excess_per_variance(score_deviation)

    def excess_per_variance(self, score_deviation: ArrayLike) -> Float[Array, "..."]:
        """Returns ``(E ghat^2 - E sum_l p_l^2) / s^2``, and its limit at ``s = 0``."""
        return self._spline(2, score_deviation)

    def mean_output(self, score_deviation: ArrayLike) -> Float[Array, "..."]:
        """Returns ``E ghat``, as the function of that name does."""
        slope = self._spline(3, score_deviation)
        return self._beside_lengths(score_deviation) * slope

    def _beside_lengths(self, score_deviation: ArrayLike) -> Float[Array, "..."]:
        s = _as_jax(score_deviation)
        return s.reshape(*s.shape, *(1,) * self.lengths.ndim)

    def _spline(self, function: int, score_deviation: ArrayLike) -> Float[Array, "..."]:
        if not isinstance(score_deviation, Tracer):
            self._check(as_float64("score_deviation", score_deviation, finite=False))
        s = _as_jax(score_deviation)
        coefficients = jnp.asarray(self.coefficients)[function]
        inside = (s >= 0) & (s <= self.largest_deviation)
        scaled = jnp.where(inside, s, 0) / _SPACING
        knot = jnp.clip(jnp.floor(scaled).astype(int), 0, coefficients.shape[0] - 1)
        local = scaled - knot
        local = self._beside_lengths(local)
        rows = jnp.moveaxis(coefficients, 1, 0)[:, knot]
        value = rows[_DEGREE]
        for degree in range(_DEGREE - 1, -1, -1):
            value = value * local + rows[degree]
        return value + self._beside_lengths(jnp.where(inside, 0.0, jnp.nan))

    def _check(self, s: np.ndarray) -> None:
        outside = ~((s >= 0) & (s <= self.largest_deviation))
        if outside.any():
            raise InvalidInputError(
                "score_deviation",
                f"{s[outside].ravel()[0]:.6g} is not in the table, which has "
                f"0 to {self.largest_deviation:g}",
                "Build the table with a larger largest_deviation, or give deviations inside it",
            )


def _as_jax(score_deviation: ArrayLike) -> Array:
    """Deviations as JAX holds them, which knows no other order of bytes than the machine's own."""
    if isinstance(score_deviation, Array):
        return score_deviation
    return jnp.asarray(as_float64("score_deviation", score_deviation, finite=False))


def spline_values(
    table: ErrorTable, score_deviation: Float[np.ndarray, "*point"]
) -> Float[np.ndarray, "4 *point_length"]:
    """The splines of a table, evaluated by NumPy for many points of one call.

    Args:
        table: The table.
        score_deviation: Deviations inside it.

    Returns:
        ``log E (ghat - s)^2``, ``log q``, ``(E ghat^2 - q) / s^2`` and ``E ghat / s`` with ``q = E
        sum_l p_l^2``, in an axis in front.
    """
    scaled = score_deviation / _SPACING
    knot = np.minimum(scaled.astype(int), table.coefficients.shape[1] - 1)
    local = (scaled - knot).reshape(*knot.shape, *(1,) * table.lengths.ndim)
    rows = np.moveaxis(table.coefficients[:, knot], knot.ndim + 1, 0)
    value = rows[_DEGREE]
    for row in rows[_DEGREE - 1 :: -1]:
        value = value * local + row
    return value


def error_table(lengths: ArrayLike, largest_deviation: float = 8.0) -> ErrorTable:
    """Tabulates the averages over finite prompts of Gaussian tokens.

    It takes some milliseconds for each of 16 knots per unit of ``s``, whatever the number of
    lengths.

    Args:
        lengths: One length ``L >= 1`` or an array of them.
        largest_deviation: The largest score deviation required, at most 31.

    Raises:
        InvalidInputError: If a length is below 1, or ``largest_deviation`` not in (0, 31].
    """
    L = check_length(lengths, "lengths")
    largest = as_float64("largest_deviation", largest_deviation)
    most = LARGEST_DEVIATION - 1
    if largest.ndim or not 0 < largest <= most:
        raise InvalidInputError(
            "largest_deviation",
            f"{largest_deviation} is not one number in (0, {most:g}]",
            f"Give the largest standard deviation of scores, positive and at most {most:g}",
        )
    intervals = int(np.ceil(float(largest) / _SPACING))
    s = _SPACING * np.arange(intervals + _BEYOND)
    moments = prompt_moments(s.reshape(-1, *(1,) * L.ndim), L)
    q = moments.sum_of_squared_weights
    gain = 1 - q
    gain[1:] = moments.mean_output[1:] / s[1:].reshape(-1, *(1,) * L.ndim)
    squared_gain = 1 - 2 * q + moments.error_per_variance
    smooth = np.stack([np.log(moments.output_error), np.log(q), squared_gain, gain])
    # All four are even in s, so that the spline is that of both sides.
    knots = np.arange(-len(s) + 1, len(s))
    both = np.concatenate([smooth[:, :0:-1], smooth], axis=1)
    spline = scipy.interpolate.make_interp_spline(knots, both, k=_DEGREE, axis=1)
    start = np.arange(intervals)
    orders = range(_DEGREE + 1)
    coefficients = np.stack([spline(start, nu) / factorial(nu) for nu in orders], axis=2)
    return ErrorTable(L, float(largest), coefficients)
