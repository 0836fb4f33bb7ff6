"""Attention over infinitely many Gaussian tokens is affine in the query."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.files.head import HeadCase, root
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import HEAD_CLAIMS
from attractor.papers.large_prompt.data import fixed_query, line, random_head
from attractor.papers.large_prompt.head_hypotheses import (
    GAUSSIAN_QUERIES,
    GAUSSIAN_TOKENS,
    horizon_at_most,
    rank_at_most,
)
from attractor.papers.large_prompt.quadrature import attended, gaussian_points, standard_points

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


def _off_affine(case: HeadCase, seed: int, nodes: int) -> Measurement:
    """The largest difference of attention by quadrature from the affine map."""
    queries = _queries(case, seed)
    mean, covariance = case.token_moments
    found = attended(gaussian_points(mean, covariance, nodes), queries @ case.U.T) @ case.V.T
    affine = (mean + queries @ case.U.T @ covariance) @ case.V.T
    error = float(np.abs(found - affine).max(initial=0.0))
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
    contrast=Contrast(
        "largest difference of attention by quadrature over the tokens from V m + V Gamma U z, "
        "over the size of values",
        lambda case, seed: _off_affine(case, seed, _NODES),
        "the same for random signs of that mean and covariance in place of Gaussian tokens",
        lambda case, seed: _off_affine(case, seed, _RANDOM_SIGNS),
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


def _off_gaussian(case: HeadCase, seed: int, nodes: int) -> Measurement:
    """The largest error of mean, covariance and fourth moments of the outputs."""
    mean, covariance = case.token_moments
    query_mean, query_covariance = case.query_moments
    factor = root(query_covariance)
    rule = standard_points(factor.shape[1], 5)  # exact for fourth moments of what is affine
    weights = np.exp(rule.log_weights)
    queries = query_mean + rule.points @ factor.T
    tokens = gaussian_points(mean, covariance, nodes)
    outputs = attended(tokens, queries @ case.U.T) @ case.V.T
    matrix = case.V @ covariance @ case.U
    claimed = case.V @ mean + matrix @ query_mean
    claimed_covariance = matrix @ query_covariance @ matrix.T
    centered = outputs - weights @ outputs
    spread = np.einsum("n,ni,nj->ij", weights, centered, centered)
    # Kurtosis along one random direction: of a Gaussian it is zero along all of them.
    sideways = centered @ np.random.default_rng([seed, 7]).standard_normal(len(case.V))
    square = weights @ sideways**2
    size = _size(case)
    constant = square <= _ROUNDING * size**2
    kurtosis = 0.0 if constant else weights @ sideways**4 / square**2 - 3
    return Measurement(
        max(
            float(np.abs(weights @ outputs - claimed).max()) / size,
            float(np.abs(spread - claimed_covariance).max()) / size**2,
            abs(float(kurtosis)),
        ),
        details={"excess kurtosis": float(kurtosis)},
    )


GAUSSIAN_OUTPUTS = HEAD_CLAIMS.claim(
    "gaussian-outputs",
    "Gaussian queries become Gaussian outputs of covariance V Gamma U G U^T Gamma V^T",
    statement="attention over Gaussian tokens takes Gaussian queries to Gaussian outputs",
    assuming=(GAUSSIAN_TOKENS, rank_at_most(3), GAUSSIAN_QUERIES, horizon_at_most(1)),
    contrast=Contrast(
        "largest error of mean, covariance and fourth moment of the outputs by quadrature, over "
        "the size of values",
        lambda case, seed: _off_gaussian(case, seed, _NODES),
        "the same for random signs of that mean and covariance in place of Gaussian tokens",
        lambda case, seed: _off_gaussian(case, seed, _RANDOM_SIGNS),
        bound=1e-9,
        reason="rounding, in the fourth moment of the outputs",
    ),
    data=lambda seed: [random_head(seed, 2), line(0.5), random_head(seed, 3, rank=2)],
    note="that Gaussian laws stay Gaussian is the paper's; the formula is derived here",
)
