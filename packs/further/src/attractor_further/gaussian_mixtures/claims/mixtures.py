"""Attention over Gaussian mixtures: affine maps behind gates that depend on the query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.papers import Comparison, Measurement
from attractor.papers.measures import attended_means
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.denoising_data import noisy_points
from attractor_further.gaussian_mixtures.mixture_data import (
    FEW_DIMENSIONS,
    MIXTURE_TOKENS,
    clusters,
    random_mixture,
)
from attractor_further.gaussian_mixtures.quadrature import cluster_points
from attractor_further.shapes import Outputs, Queries

_NODES = 40
_TINY = float(np.finfo(np.float64).tiny)
_QUERIES = 8
_LARGEST_DEVIATION = 4.0
_STEP = 1e-5
"""Over the change of a query by which scores change by one standard deviation."""

Directions = Float[np.ndarray, "query d"]
"""``a = U z``, by which each query tilts the law of the tokens."""
Gates = Float[np.ndarray, "query k"]
"""Attention on each component."""

_ASSUMPTIONS = (MIXTURE_TOKENS, FEW_DIMENSIONS)


def _queries(case: HeadCase, seed: int) -> Queries:
    """Some queries whose scores are within the reach of the quadrature."""
    queries = case.queries.sample(_QUERIES, seed=seed)
    a = queries @ case.U.T
    deviations = np.sqrt(np.einsum("kij,ni,nj->kn", clusters(case).covariances, a, a)).max(0)
    return queries[deviations <= _LARGEST_DEVIATION]


def _integrated(case: HeadCase, queries: Queries) -> Outputs:
    """Attention by quadrature over the tokens."""
    return attended_means(cluster_points(case, _NODES), queries @ case.U.T) @ case.V.T


def _softmax_gates(case: HeadCase, a: Directions) -> Gates:
    """The gates ``r_k`` of attention, softmax of ``log pi_k + m_k^T a + a^T Gamma_k a / 2``."""
    weights, means, covariances = clusters(case)
    logs = np.log(weights) + a @ means.T + np.einsum("kij,ni,nj->nk", covariances, a, a) / 2
    return softmax(logs, axis=-1)


def _fixed_gates(case: HeadCase, a: Directions) -> Gates:
    """The gates of linear attention, the probabilities of the components."""
    return np.tile(clusters(case).weights, (len(a), 1))


def _off_gated(
    case: HeadCase, seed: int, gates: Callable[[HeadCase, Directions], Gates]
) -> Measurement:
    """The largest difference from ``sum_k r_k V (m_k + Gamma_k a)`` with gates ``r_k``.

    It is over the largest output of a mean ``m_k + Gamma_k a`` or a deviation of a token along each
    axis alone: what is added up, of which little may be left.
    """
    queries = _queries(case, seed)
    a = queries @ case.U.T
    experts = _experts(case, a)
    gated = np.einsum("nk,nki,vi->nv", gates(case, a), experts, case.V)
    difference = np.abs(_integrated(case, queries) - gated).max(initial=0.0)
    deviations = np.sqrt(np.diagonal(clusters(case).covariances, axis1=1, axis2=2))
    size = ((np.abs(experts) + deviations) @ np.abs(case.V).T).max(initial=_TINY)
    return Measurement(float(difference / size), len(queries))


def _experts(case: HeadCase, a: Directions) -> Float[np.ndarray, "query k d"]:
    """``m_k + Gamma_k a``: the mean of each component, tilted by each query."""
    _, means, covariances = clusters(case)
    return means + np.einsum("kij,nj->nki", covariances, a)


MIXTURE_ATTENTION = CLAIMS.claim(
    "mixture-attention",
    "over a mixture attention is sum r_k(z) V (m_k + Gamma_k U z), with softmax gates r_k",
    statement="attention over a Gaussian mixture",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "largest difference of attention by quadrature over the tokens from the gated sum, over "
        "the largest of what is added up",
        _off_gated,
        lambda *_: _softmax_gates,
        "the same for the gates of linear attention, the probabilities of the components",
        lambda *_: _fixed_gates,
        bound=1e-11,
        reason="rounding; 40 nodes an axis integrate scores of deviation 4 to that",
    ),
    data=lambda seed: [random_mixture(seed), random_mixture(seed, 3, 2), noisy_points()],
)


def _tilted_covariance(
    gates: Float[np.ndarray, "k"],
    experts: Float[np.ndarray, "k d"],
    covariances: Float[np.ndarray, "k d d"],
) -> Float[np.ndarray, "d d"]:
    """The covariance of the tilted mixture: that within components, and that of their means."""
    centered = experts - gates @ experts
    between = np.einsum("k,ki,kj->ij", gates, centered, centered)
    return _covariance_within(gates, experts, covariances) + between


def _covariance_within(
    gates: Float[np.ndarray, "k"],
    experts: Float[np.ndarray, "k d"],
    covariances: Float[np.ndarray, "k d d"],
) -> Float[np.ndarray, "d d"]:
    """The covariance within components, all that there is where gates do not move."""
    return np.einsum("k,kij->ij", gates, covariances)


def _off_sensitivity(
    case: HeadCase, seed: int, covariance: Callable[..., Float[np.ndarray, "d d"]]
) -> Measurement:
    """The largest relative difference of the derivative in the query from ``V C U``."""
    queries = _queries(case, seed)
    a = queries @ case.U.T
    gates, experts = _softmax_gates(case, a), _experts(case, a)
    unit = _units(case)
    found, claimed = [], []
    for place, query in enumerate(queries):
        steps = _STEP * np.diag(unit)
        moved = _integrated(case, np.concatenate([query + steps, query - steps]))
        ahead, behind = np.split(moved, 2)
        found.append((ahead - behind).T / (2 * _STEP))
        tilted = covariance(gates[place], experts[place], clusters(case).covariances)
        claimed.append(case.V @ tilted @ case.U * unit)
    if not found:
        return Measurement(np.nan, 0)
    difference = np.abs(np.array(found) - np.array(claimed)).max()
    return Measurement(float(difference / max(np.abs(claimed).max(), _TINY)), len(queries))


def _units(case: HeadCase) -> Float[np.ndarray, "e"]:
    """The change of each entry of a query by which scores change by one deviation of a token."""
    weights, means, covariances = clusters(case)
    centered = means - weights @ means
    spread = np.einsum("k,kij->ij", weights, covariances)
    spread += np.einsum("k,ki,kj->ij", weights, centered, centered)
    deviations = np.sqrt(np.einsum("ie,ij,je->e", case.U, spread, case.U))
    return 1 / np.where(deviations > 0, deviations, 1.0)


MIXTURE_SENSITIVITY = CLAIMS.claim(
    "mixture-sensitivity",
    "the derivative in the query has the spread of the components' means under the gates",
    statement="attention over a Gaussian mixture, its derivative",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "largest difference of the derivative, by differences of the quadrature, from V C U, over "
        "the largest entry of that, in units in which scores change alike",
        _off_sensitivity,
        lambda *_: _tilted_covariance,
        "the same without the spread of the means, that is with gates that do not move",
        lambda *_: _covariance_within,
        bound=1e-8,
        reason="differences over 2e-5 leave 1e-10 times third derivatives, and rounding of 1e-10",
    ),
    data=lambda seed: [random_mixture(seed), random_mixture(seed + 1), noisy_points()],
)
