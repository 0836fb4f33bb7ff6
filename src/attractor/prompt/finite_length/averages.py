"""The error of the output averaged over Gaussian queries, as integrals and not by sampling.

With ``sigma_i`` the singular values of ``Gamma^(1/2) U Gamma_z^(1/2)``, the score variance of a
query is ``s^2 = sum_i sigma_i^2 zeta_i^2`` for independent standard normal ``zeta_i``, and its
direction has the square ``sigma_i^2 zeta_i^2 / s^2`` along the i-th left singular vector. A factor
``zeta_i^2`` gives ``zeta_i^2`` three degrees of freedom in place of one, so that every average is
one of a function of ``s`` alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.interpolate
import scipy.special
from jaxtyping import ArrayLike, Float

from attractor.checks import naming
from attractor.errors import InvalidInputError
from attractor.precision import LARGEST, as_float64
from attractor.prompt.finite_length.functions import (
    LARGEST_DEVIATION,
    check_length,
    prompt_moments,
)
from attractor.prompt.finite_length.squared_errors import covariance_factor
from attractor.prompt.head import AttentionHead

_NODES = 96
_SPACING = 1 / 8
_BEYOND = 4

_Average = Callable[[np.ndarray, np.ndarray], np.ndarray]


def averaged_output_error(
    singular_values: ArrayLike,
    length: ArrayLike,
    *,
    gains: ArrayLike | None = None,
) -> Float[np.ndarray, "..."]:
    """Returns the squared error of the output averaged over prompts and Gaussian queries.

    The tokens are Gaussian, and so are the queries, with mean zero. The largest singular value is
    the horizon. The average is exact to about 1e-8 of itself, at any length; the exponent at which
    it decays is ``error_exponent``.

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
            value is so large that score deviations beyond 32 matter.
    """
    sigma = np.atleast_1d(as_float64("singular_values", singular_values, largest=LARGEST))
    weights = (
        np.ones_like(sigma)
        if gains is None
        else np.atleast_1d(as_float64("gains", gains, largest=LARGEST))
    )
    L = check_length(length)
    for name, value in (("singular_values", sigma), ("gains", weights)):
        if value.ndim != 1 or not value.size or (value < 0).any():
            raise InvalidInputError(
                name, "it is not one row of numbers >= 0", "Give one number for each dimension"
            )
    if weights.shape != sigma.shape:
        raise InvalidInputError(
            "gains", f"there are {len(weights)}", f"Give {len(sigma)}, one for each singular value"
        )
    if not sigma.any():
        return weights.sum() / L
    # Singular values that differ by rounding are one, and those that are rounding are none.
    rounded = np.round(sigma / sigma.max(), 12) * sigma.max()
    seen = rounded > 0
    scales, place, degrees = np.unique(rounded[seen], return_inverse=True, return_counts=True)
    weights_of_scale = np.bincount(place, weights[seen])
    reach = _reach(scales, degrees, L)
    flat = L.ravel()
    nodes, average = (_one_scale if len(scales) == 1 else _many_scales)(scales, reach)
    moments = prompt_moments(nodes[:, None], flat)
    result = weights.sum() * average(degrees, moments.sum_of_squared_weights)
    for i, scale in enumerate(scales):
        raised = degrees + 2 * (np.arange(len(scales)) == i)
        part = average(raised, moments.error_per_variance)
        result += weights_of_scale[i] * scale**2 * part
    return result.reshape(L.shape)


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


def _reach(
    scales: Float[np.ndarray, "scale"], degrees: np.ndarray, L: Float[np.ndarray, "..."]
) -> float:
    """The deviation beyond which less than 1e-10 of the average, at least 1 / L, is left."""
    rarest = np.sqrt(2 * (23 + float(np.log(L.max(initial=1)))))
    reach = float(scales[-1] * (np.sqrt(degrees.sum() + 2) + rarest))
    if reach > LARGEST_DEVIATION - 1:
        raise InvalidInputError(
            "singular_values",
            f"with {scales[-1]:.6g} queries matter whose scores have deviations up to {reach:.3g}",
            f"Give singular values of at most {scales[-1] * 31 / reach:.3g}, or fewer tokens",
        )
    return reach


def _one_scale(
    scales: Float[np.ndarray, "1"], reach: float
) -> tuple[Float[np.ndarray, "node"], _Average]:
    """Nodes, and averages of functions given there, where all directions have one scale."""
    x, panel = _panel(reach / scales[0])

    def average(degrees: np.ndarray, values: np.ndarray) -> Float[np.ndarray, "length"]:
        return (panel * _chi_density(int(degrees[0]), x)) @ values

    return scales[0] * x, average


def _many_scales(
    scales: Float[np.ndarray, "scale"], reach: float
) -> tuple[Float[np.ndarray, "node"], _Average]:
    """Nodes, and averages over one scale after the other as functions of what the others add."""
    r = _SPACING * np.arange(int(np.ceil(reach / _SPACING)) + _BEYOND)
    x, panel = _panel(reach / scales[-1])

    def average(degrees: np.ndarray, values: np.ndarray) -> Float[np.ndarray, "length"]:
        for scale, degree in zip(scales, degrees, strict=True):
            spline = _even_spline(np.log(values))
            arguments = np.minimum(np.hypot(r[:, None], scale * x), r[-1])
            weight = panel * _chi_density(int(degree), x)
            values = np.einsum("n,rnl->rl", weight, np.exp(spline(arguments / _SPACING)))
        return values[0]

    return r, average


def _panel(end: float) -> tuple[Float[np.ndarray, "node"], Float[np.ndarray, "node"]]:
    """Gauss-Legendre nodes and weights from 0 to an end."""
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    return (x + 1) * end / 2, weight * end / 2


def _chi_density(degree: int, x: Float[np.ndarray, "node"]) -> Float[np.ndarray, "node"]:
    """The density of the length of a standard normal vector in some dimension."""
    log_density = (degree - 1) * np.log(x) - x**2 / 2 - (degree / 2 - 1) * np.log(2)
    return np.exp(log_density - scipy.special.gammaln(degree / 2))


def _even_spline(values: Float[np.ndarray, "knot length"]) -> scipy.interpolate.BSpline:
    """The spline through an even function given at 0, 1, 2, ..."""
    knots = np.arange(-len(values) + 1, len(values))
    both = np.concatenate([values[:0:-1], values])
    return scipy.interpolate.make_interp_spline(knots, both, k=5, axis=0)
