"""The error of the output averaged over Gaussian queries, as integrals and not by sampling.

With ``sigma_i`` the singular values of ``Gamma^(1/2) U Gamma_z^(1/2)``, the score variance of a
query is ``s^2 = sum_i sigma_i^2 zeta_i^2`` for independent standard normal ``zeta_i``, and its
direction has the square ``sigma_i^2 zeta_i^2 / s^2`` along the i-th left singular vector. Averages
over prompts are functions of ``s`` alone, so that those over queries are integrals over ``s``.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import ArrayLike, Float
from numpy.polynomial.chebyshev import chebvander

from attractor.prompts.finite_length.frozen import largest_token
from attractor.prompts.finite_length.functions import check_length, prompt_moments
from attractor.prompts.finite_length.score_variance import ScoreVariance
from attractor.prompts.finite_length.squared_errors import covariance_factor
from attractor.prompts.head import AttentionHead
from attractor.support.checks import naming
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64

_NEGLIGIBLE = 1e-11
_FIRST, _GROWTH, _WIDE = 1.8, 1.5, 1.05
"""Intervals of deviations end at the first of these, then at this multiple of their starts, and
from this multiple of the largest token on nowhere."""
_KNOTS = 24
_BEYOND = 1.001  # the last deviation, for intervals that hold it alone
_LARGEST_SINGULAR_VALUE = 1e20


def averaged_output_error(
    singular_values: ArrayLike,
    length: ArrayLike,
    *,
    gains: ArrayLike | None = None,
) -> Float[np.ndarray, "..."]:
    """Returns the squared error of the output averaged over prompts and Gaussian queries.

    The tokens are Gaussian, and so are the queries, with mean zero. The largest singular value is
    the horizon. The average is exact to about 1e-9 of itself up to 1e12 tokens, and to 1e-7 up to
    1e60, at any horizon. It decays with the exponent ``error_exponent``.

    Args:
        singular_values: The singular values of ``Gamma^(1/2) U Gamma_z^(1/2)``, one for each
            dimension of the tokens, zeros included; one number means dimension 1.
        length: Numbers of tokens ``L >= 1``.
        gains: ``||V Gamma^(1/2) l_i||^2`` for the left singular vectors ``l_i``, in the same order;
            all 1 if left out.

    Returns:
        The averaged error, of the shape of ``length``.

    Raises:
        InvalidInputError: If a number is negative, a length below 1, shapes differ, or a singular
            value is beyond 1e20.
    """
    sigma = check_singular_values(singular_values)
    weights = (
        np.ones_like(sigma)
        if gains is None
        else np.atleast_1d(as_float64("gains", gains, largest=LARGEST))
    )
    L = check_length(length)
    check_row("gains", weights)
    if weights.shape != sigma.shape:
        raise InvalidInputError(
            "gains", f"there are {len(weights)}", f"Give {len(sigma)}, one for each singular value"
        )
    if not sigma.any():
        return weights.sum() / L
    if not weights.any() or not L.size:
        return np.zeros_like(L)
    return _average(sigma, weights, L.ravel()).reshape(L.shape)


def averaged_error_of_output(
    covariance: Float[ArrayLike, "d d"],
    score_matrix: Float[ArrayLike, "d e"],
    value_matrix: Float[ArrayLike, "v d"],
    query_covariance: Float[ArrayLike, "e e"],
    length: ArrayLike,
) -> Float[np.ndarray, "..."]:
    """Returns the squared error of the output of a head, averaged over prompts and queries.

    That is ``E || V (m_hat - m - Gamma U z) ||^2`` over prompts of Gaussian tokens, whose mean does
    not matter, and queries ``z ~ N(0, Gamma_z)``.

    Args:
        covariance: ``Gamma`` of the tokens, ``(d, d)``, positive semidefinite.
        score_matrix: ``U``, ``(d, e)``.
        value_matrix: ``V``, ``(v, d)``.
        query_covariance: ``Gamma_z``, ``(e, e)``, positive semidefinite.
        length: Numbers of tokens ``L >= 1``.

    Raises:
        InvalidInputError: If shapes do not fit, a covariance is not symmetric positive
            semidefinite, or as ``averaged_output_error`` says.
    """
    head = AttentionHead(score_matrix, value_matrix)
    U, V = np.asarray(head.score_matrix), np.asarray(head.value_matrix)
    tokens = covariance_factor(covariance, U.shape[0])
    queries = covariance_factor(query_covariance, U.shape[1], "query_covariance")
    left, values, _ = np.linalg.svd(tokens.T @ U @ queries)
    singular = np.zeros(U.shape[0])
    singular[: len(values)] = values
    gains = ((V @ tokens @ left) ** 2).sum(0)
    with naming(singular_values="score_matrix"):
        return averaged_output_error(singular, length, gains=gains)


def check_singular_values(given: ArrayLike) -> Float[np.ndarray, "d"]:
    """Returns singular values as one row of float64.

    Raises:
        InvalidInputError: If they are not one row of numbers in [0, 1e20].
    """
    sigma = np.atleast_1d(as_float64("singular_values", given, largest=LARGEST))
    check_row("singular_values", sigma)
    if sigma.max() > _LARGEST_SINGULAR_VALUE:
        raise InvalidInputError(
            "singular_values",
            f"{sigma.max():.6g} is beyond {_LARGEST_SINGULAR_VALUE:g}",
            "Give smaller ones: one token takes all attention long before",
        )
    return sigma


def check_row(name: str, value: Float[np.ndarray, "..."]) -> None:
    """Refuses what is not one row of numbers >= 0.

    Raises:
        InvalidInputError: If it is not.
    """
    if value.ndim != 1 or not value.size or (value < 0).any():
        raise InvalidInputError(
            name, "it is not one row of numbers >= 0", "Give one number for each dimension"
        )


def _average(
    sigma: Float[np.ndarray, "d"], gains: Float[np.ndarray, "d"], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """The average, as a sum over intervals of score deviations up to where nothing is left."""
    law = ScoreVariance.of(sigma**2, _NEGLIGIBLE / L.max())
    s, masses = law.deviations, law.masses
    everywhere, along = gains.sum() * masses, law.masses_along(gains * sigma**2)
    # Averages over prompts are at most 1, which they are for a single token.
    beyond = np.cumsum((everywhere + along)[::-1])[::-1]
    result = np.zeros_like(L)
    # The errors grow with the deviation, so that few queries with little are less of the average.
    first = int(np.searchsorted(np.cumsum(masses), _NEGLIGIBLE))
    while first < len(s) and beyond[first] >= _NEGLIGIBLE * result.min():
        end = min(max(_FIRST, _GROWTH * s[first]), _BEYOND * s[-1])
        if s[first] >= _WIDE * largest_token(L):
            end = math.inf
        last = int(np.searchsorted(s, end))
        here = slice(first, last)
        weights, per_variance = interpolated_averages(L, s[first], end, s[here])
        result += everywhere[here] @ weights + along[here] @ per_variance
        first = last
    return result


def interpolated_averages(
    L: Float[np.ndarray, "length"], start: float, end: float, s: Float[np.ndarray, "node"]
) -> Float[np.ndarray, "2 node length"]:
    """``E sum_l p_l^2`` and the error per variance, through Chebyshev nodes of the interval.

    Those of wide scores are smooth functions of ``1 / s``, up to an end at infinity.
    """
    wide = math.isinf(end)
    if wide:
        start, end, s = 0.0, 1 / start, 1 / s
    chebyshev = -np.cos(np.pi * (np.arange(_KNOTS) + 0.5) / _KNOTS)
    knots = start + (end - start) * (chebyshev + 1) / 2
    moments = prompt_moments((1 / knots if wide else knots)[:, None], L)
    logs = np.log(np.stack([moments.sum_of_squared_weights, moments.error_per_variance]))
    coefficients = np.linalg.solve(chebvander(chebyshev, _KNOTS - 1), logs)
    return np.exp(chebvander(2 * (s - start) / (end - start) - 1, _KNOTS - 1) @ coefficients)
