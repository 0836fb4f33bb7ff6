"""Attention over Gaussian mixtures: affine maps behind gates that depend on the query."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from attractor.files.head import HeadCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import MIXTURE_CLAIMS
from attractor.papers.large_prompt.data import Outputs, Queries
from attractor.papers.large_prompt.denoising_data import noisy_points
from attractor.papers.large_prompt.head_hypotheses import MIXTURE_TOKENS
from attractor.papers.large_prompt.mixture_data import (
    FEW_DIMENSIONS,
    clusters,
    random_mixture,
)
from attractor.papers.large_prompt.quadrature import attended, cluster_points

_NODES = 40
_QUERIES = 8
_LARGEST_DEVIATION = 4.0
_STEP = 1e-5

_ASSUMPTIONS = (MIXTURE_TOKENS, FEW_DIMENSIONS)


def _queries(case: HeadCase, seed: int) -> Queries:
    """Some queries whose scores are within the reach of the quadrature."""
    queries = case.queries.sample(_QUERIES, seed=seed)
    a = queries @ case.U.T
    deviations = np.sqrt(np.einsum("kij,ni,nj->kn", clusters(case).covariances, a, a)).max(0)
    return queries[deviations <= _LARGEST_DEVIATION]


def _integrated(case: HeadCase, queries: Queries) -> Outputs:
    """Attention by quadrature over the tokens."""
    return attended(cluster_points(case, _NODES), queries @ case.U.T) @ case.V.T


def _gated(case: HeadCase, queries: Queries, selective: bool) -> Outputs:
    """``sum_k r_k V (m_k + Gamma_k a)`` with the gates of attention, or with fixed ones."""
    weights, means, covariances = clusters(case)
    a = queries @ case.U.T
    logs = np.log(weights) + a @ means.T * selective
    logs += selective * np.einsum("kij,ni,nj->nk", covariances, a, a) / 2
    gates = softmax(logs, axis=-1)
    experts = means + np.einsum("kij,nj->nki", covariances, a)
    return np.einsum("nk,nki,vi->nv", gates, experts, case.V)


def _off_gated(case: HeadCase, seed: int, selective: bool) -> Measurement:
    queries = _queries(case, seed)
    difference = _integrated(case, queries) - _gated(case, queries, selective)
    return Measurement(float(np.abs(difference).max(initial=0.0)), len(queries))


MIXTURE_ATTENTION = MIXTURE_CLAIMS.claim(
    "mixture-attention",
    "over a mixture attention is sum r_k(z) V (m_k + Gamma_k U z), with softmax gates r_k",
    statement="attention over a Gaussian mixture",
    assuming=_ASSUMPTIONS,
    contrast=Contrast(
        "largest difference of attention by quadrature over the tokens from the gated sum",
        lambda case, seed: _off_gated(case, seed, True),
        "the same for the gates of linear attention, the probabilities of the components",
        lambda case, seed: _off_gated(case, seed, False),
        bound=1e-11,
        reason="rounding; 40 nodes an axis integrate scores of deviation 4 to that",
    ),
    data=lambda seed: [random_mixture(seed), random_mixture(seed, 3, 2), noisy_points()],
)


def _off_sensitivity(case: HeadCase, seed: int, between: bool) -> Measurement:
    """The largest relative difference of the derivative in the query from the formula."""
    weights, means, covariances = clusters(case)
    queries = _queries(case, seed)
    found, claimed = [], []
    for query in queries:
        steps = _STEP * np.eye(len(query))
        moved = _integrated(case, np.concatenate([query + steps, query - steps]))
        ahead, behind = np.split(moved, 2)
        found.append((ahead - behind).T / (2 * _STEP))

        a = case.U @ query
        gates = softmax(np.log(weights) + means @ a + (covariances @ a) @ a / 2)
        experts = means + covariances @ a
        centered = experts - gates @ experts
        spread = np.einsum("k,ki,kj->ij", gates, centered, centered) * between
        tilted = np.einsum("k,kij->ij", gates, covariances) + spread
        claimed.append(case.V @ tilted @ case.U)
    if not found:
        return Measurement(np.nan, 0)
    difference = np.abs(np.array(found) - np.array(claimed)).max()
    return Measurement(float(difference / max(1.0, np.abs(claimed).max())), len(queries))


MIXTURE_SENSITIVITY = MIXTURE_CLAIMS.claim(
    "mixture-sensitivity",
    "the derivative in the query has the spread of the components' means under the gates",
    statement="attention over a Gaussian mixture, its derivative",
    assuming=_ASSUMPTIONS,
    contrast=Contrast(
        "largest difference of the derivative, by differences of the quadrature, from V C U",
        lambda case, seed: _off_sensitivity(case, seed, True),
        "the same without the spread of the means, that is with gates that do not move",
        lambda case, seed: _off_sensitivity(case, seed, False),
        bound=1e-8,
        reason="differences over 2e-5 leave 1e-10 times third derivatives, and rounding of 1e-10",
    ),
    data=lambda seed: [random_mixture(seed), random_mixture(seed + 1), noisy_points()],
)
