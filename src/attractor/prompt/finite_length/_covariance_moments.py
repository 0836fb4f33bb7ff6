"""What a finite prompt of Gaussian tokens does to the weighted covariance.

With ``u`` the direction of the scores, a token is ``x = m + u g + r``: ``g ~ N(0, 1)`` decides its
weight ``p``, and ``r ~ N(0, G)`` is independent of it. The weighted covariance is then

    C_hat = v u u^T + u c^T + c u^T + R,    v = sum p g^2 - (sum p g)^2,
    c = sum p (g - ghat) r,    R = sum p r r^T - (sum p r) (sum p r)^T

and, given the weights, everything about ``r`` is a Gaussian average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompt.finite_length.functions import for_each_deviation
from attractor.prompt.finite_length.laplace import Transforms


class CovarianceMoments(NamedTuple):
    """Averages over prompts, with ``q = sum_l p_l^2`` and ``v`` the weighted variance of ``g``.

    Attributes:
        mean_variance: ``E v``; it is 1 at infinite length.
        variance_error: ``E (v - 1)^2``.
        variance_times_weights: ``E (v - 1) q``.
        squared_deviations: ``E sum_l p_l^2 (g_l - ghat)^2``.
        squared_weights_squared: ``E q^2``.
        covariance_of_weights: ``E || diag(p) - p p^T ||_F^2``.
    """

    mean_variance: Float[np.ndarray, "*shape"]
    variance_error: Float[np.ndarray, "*shape"]
    variance_times_weights: Float[np.ndarray, "*shape"]
    squared_deviations: Float[np.ndarray, "*shape"]
    squared_weights_squared: Float[np.ndarray, "*shape"]
    covariance_of_weights: Float[np.ndarray, "*shape"]


def covariance_moments(score_deviation: ArrayLike, length: ArrayLike) -> CovarianceMoments:
    """Computes the averages that errors of the weighted covariance are made of.

    Args:
        score_deviation: Standard deviations ``s`` of the scores, at most 32.
        length: Numbers of tokens ``L >= 1``; broadcasts against ``score_deviation``.

    Returns:
        The averages, to a relative error below 1e-9 for deviations up to 16, and below 1e-6 beyond.

    Raises:
        InvalidInputError: If a deviation is negative or beyond 32, or a length below 1.
    """
    return CovarianceMoments(*for_each_deviation(score_deviation, length, _moments))


def _moments(s: float, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "value length"]:
    """The averages of ``CovarianceMoments``, in its order.

    With ``h = g - s`` and ``k = h^2 - 1``, both of weighted mean 0 in the limit, ``v - 1`` is
    ``sum p k - (sum p h)^2``; its parts vanish as fast as it does.
    """
    if s == 0:
        values = [1 - 1 / L, (2 * L - 1) / L**2, -1 / L**2, (L - 1) / L**2, 1 / L**2]
        return np.stack([*values, (L - 1) / L**2])
    one = Transforms.of(s, L, 4, 4)
    weights = {power: one.moment(power) for power in (1, 2, 3, 4)}
    values = np.stack(
        [
            1 + _excess(one, L) - _squared_shift(one, L),
            _variance_error(one, L),
            _variance_times_weights(one, weights, L),
            _squared_deviations(one, weights, L),
            one.integral(L, 1, 4, weights[4]) + one.integral(L, 2, 4, weights[2] ** 2),
            one.integral(L, 2, 4, 2 * weights[2] ** 2)
            + one.integral(L, 3, 4, weights[2] * weights[1] ** 2),
        ]
    )
    alone = np.array([0.0, 1.0, -1.0, 0.0, 1.0, 0.0])
    return np.where(L == 1, alone[:, None], values)


def _excess(one: Transforms, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "length"]:
    """``E sum p k``."""
    return one.integral(L, 1, 1, one.excess(1))


def _squared_shift(one: Transforms, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "length"]:
    """``E (sum p h)^2``."""
    return one.integral(L, 1, 2, one.moment(2, 2)) + one.integral(L, 2, 2, one.moment(1, 1) ** 2)


def _variance_error(one: Transforms, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "length"]:
    """``E (sum p k)^2 - 2 E (sum p k) (sum p h)^2 + E (sum p h)^4``."""
    h, h2 = one.moment(1, 1), one.moment(2, 2)
    k = one.excess(1)
    squared = one.integral(L, 1, 2, one.excess(2, 2) - one.excess(2))
    squared += one.integral(L, 2, 2, k**2)

    mixed = one.integral(L, 1, 3, one.excess(3, 2))
    mixed += one.integral(L, 2, 3, 2 * one.excess(2, 1) * h + k * h2)
    mixed += one.integral(L, 3, 3, k * h**2)

    fourth = one.integral(L, 1, 4, one.moment(4, 4))
    fourth += one.integral(L, 2, 4, 4 * one.moment(3, 3) * h + 3 * h2**2)
    fourth += one.integral(L, 3, 4, 6 * h2 * h**2)
    fourth += one.integral(L, 4, 4, h**4)
    return squared - 2 * mixed + fourth


def _variance_times_weights(
    one: Transforms, weights: dict[int, np.ndarray], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """``E (sum p k) (sum p^2) - E (sum p h)^2 (sum p^2)``."""
    excess = one.integral(L, 1, 3, one.excess(3))
    excess += one.integral(L, 2, 3, one.excess(1) * weights[2])
    return excess - _shift_times_weights(one, weights, L)


def _shift_times_weights(
    one: Transforms, weights: dict[int, np.ndarray], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """``E (sum p h)^2 (sum p^2)``."""
    h = one.moment(1, 1)
    value = one.integral(L, 1, 4, one.moment(4, 2))
    value += one.integral(L, 2, 4, 2 * one.moment(3, 1) * h + one.moment(2, 2) * weights[2])
    return value + one.integral(L, 3, 4, h**2 * weights[2])


def _squared_deviations(
    one: Transforms, weights: dict[int, np.ndarray], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """``E sum p^2 h^2 - 2 E (sum p^2 h) (sum p h) + E (sum p^2) (sum p h)^2``."""
    value = one.integral(L, 1, 2, one.moment(2, 2))
    mixed = one.integral(L, 1, 3, one.moment(3, 2))
    mixed += one.integral(L, 2, 3, one.moment(2, 1) * one.moment(1, 1))
    return value - 2 * mixed + _shift_times_weights(one, weights, L)
