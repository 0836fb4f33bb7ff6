"""Attention over infinitely many Gaussian tokens is affine in the query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Comparison, Measurement
from attractor.papers.large_prompt.claims import HEAD_CLAIMS
from attractor.papers.large_prompt.data import Outputs, Queries, fixed_query, line, random_head
from attractor.papers.large_prompt.head_hypotheses import (
    GAUSSIAN_QUERIES,
    GAUSSIAN_TOKENS,
    horizon_at_most,
    rank_at_most,
)
from attractor.papers.large_prompt.quadrature import (
    attended_means,
    gaussian_points,
    standard_points,
)
from attractor.prompts.files.head import HeadCase, root

_NODES = 40
_QUERIES = 8
_LARGEST_DEVIATION = 4.0
_ROUNDING = 1e-20
"""Share of a square that is rounding."""
_RANDOM_SIGNS = 2
"""Nodes at which the rule is that of random signs with the same mean and covariance."""


def _queries(case: HeadCase, seed: int) -> Float[np.ndarray, "query e"]:
    """Some queries whose scores are within the reach of the quadrature."""
    queries = case.queries.sample(_QUERIES, seed=seed)
    deviation = np.linalg.norm(queries @ case.U.T @ root(case.token_moments[1]), axis=-1)
    return queries[deviation <= _LARGEST_DEVIATION]


_Map = Callable[[Queries], Outputs]


def _affine(case: HeadCase, seed: int) -> _Map:
    mean, covariance = case.token_moments
    return lambda queries: (mean + queries @ case.U.T @ covariance) @ case.V.T


def _attention(case: HeadCase, nodes: int) -> _Map:
    """Attention over the points of a quadrature rule, in place of the Gaussian law."""
    points = gaussian_points(*case.token_moments, nodes)
    return lambda queries: attended_means(points, queries @ case.U.T) @ case.V.T


def _off(case: HeadCase, seed: int, named: _Map) -> Measurement:
    """The largest difference of attention by quadrature from a map."""
    queries = _queries(case, seed)
    error = float(np.abs(_attention(case, _NODES)(queries) - named(queries)).max(initial=0.0))
    return Measurement(error / _size(case), len(queries))


def _size(case: HeadCase) -> float:
    """The size of the value of a token."""
    mean, covariance = case.token_moments
    deviation = np.sqrt(np.linalg.norm(covariance, 2))
    size = float(np.linalg.norm(case.V, 2) * (np.linalg.norm(mean) + deviation))
    return max(size, 1e-100)


AFFINE_ATTENTION = HEAD_CLAIMS.claim(
    "affine-attention",
    "over tokens N(m, Gamma) attention returns V m + V Gamma U z, singular Gamma included",
    statement="attention over Gaussian tokens is affine",
    assuming=(GAUSSIAN_TOKENS, rank_at_most(3)),
    contrast=Comparison(
        "largest difference of attention by quadrature over the tokens from V m + V Gamma U z, "
        "over the size of values",
        _off,
        _affine,
        "the same from attention over random signs of the mean and covariance of the tokens",
        lambda case, seed: _attention(case, _RANDOM_SIGNS),
        bound=1e-11,
        reason="rounding; 40 nodes an axis integrate scores of deviation 4 to that",
    ),
    data=lambda seed: [
        fixed_query((2.0,)),
        random_head(seed, 2),
        random_head(seed, 3, rank=2),
        random_head(seed, 3, rank=1),
        line(1.5),
        random_head(seed, 3),
    ],
    note="for a score of 2 on a line the control is |2 - tanh 2| = 1.036",
)


@dataclass(frozen=True)
class _Law:
    """What is measured of a law of outputs: a Gaussian one has no excess kurtosis."""

    mean: Float[np.ndarray, "v"]
    covariance: Float[np.ndarray, "v v"]
    kurtosis: float


def _gaussian(case: HeadCase, seed: int) -> _Law:
    mean, covariance = case.token_moments
    query_mean, query_covariance = case.query_moments
    matrix = case.V @ covariance @ case.U
    return _Law(case.V @ mean + matrix @ query_mean, matrix @ query_covariance @ matrix.T, 0.0)


def _law_of_outputs(case: HeadCase, seed: int, nodes: int) -> _Law:
    """That of attention over the points of a quadrature rule, by quadrature over the queries."""
    query_mean, query_covariance = case.query_moments
    factor = root(query_covariance)
    rule = standard_points(factor.shape[1], 5)  # exact for fourth moments of what is affine
    weights = np.exp(rule.log_weights)
    outputs = _attention(case, nodes)(query_mean + rule.points @ factor.T)
    mean = weights @ outputs
    centered = outputs - mean
    spread = np.einsum("n,ni,nj->ij", weights, centered, centered)
    # Kurtosis along one random direction: of a Gaussian it is zero along all of them.
    sideways = centered @ np.random.default_rng([seed, 7]).standard_normal(len(case.V))
    square = weights @ sideways**2
    constant = square <= _ROUNDING * _size(case) ** 2
    kurtosis = 0.0 if constant else float(weights @ sideways**4 / square**2 - 3)
    return _Law(mean, spread, kurtosis)


def _off_law(case: HeadCase, seed: int, named: _Law) -> Measurement:
    """The largest error of mean, covariance and fourth moments of the outputs."""
    found, size = _law_of_outputs(case, seed, _NODES), _size(case)
    return Measurement(
        max(
            float(np.abs(found.mean - named.mean).max()) / size,
            float(np.abs(found.covariance - named.covariance).max()) / size**2,
            abs(found.kurtosis - named.kurtosis),
        ),
        details={"excess kurtosis": found.kurtosis},
    )


GAUSSIAN_OUTPUTS = HEAD_CLAIMS.claim(
    "gaussian-outputs",
    "Gaussian queries become Gaussian outputs of covariance V Gamma U G U^T Gamma V^T",
    statement="attention over Gaussian tokens takes Gaussian queries to Gaussian outputs",
    assuming=(GAUSSIAN_TOKENS, rank_at_most(3), GAUSSIAN_QUERIES, horizon_at_most(1)),
    contrast=Comparison(
        "largest error of mean, covariance and fourth moment of the outputs by quadrature, over "
        "the size of values",
        _off_law,
        _gaussian,
        "the same from those of attention over random signs of the mean and covariance of tokens",
        lambda case, seed: _law_of_outputs(case, seed, _RANDOM_SIGNS),
        bound=1e-9,
        reason="rounding, in the fourth moment of the outputs",
    ),
    data=lambda seed: [random_head(seed, 2), line(0.5), random_head(seed, 3, rank=2)],
    note="that Gaussian laws stay Gaussian is the paper's; the formula is derived here",
)
