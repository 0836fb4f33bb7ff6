"""A random attention head, with Gaussian tokens or samples from a sphere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attractor.checks import check_count
from attractor.randomness import generator

if TYPE_CHECKING:
    from attractor.prompt.head import AttentionHead
    from attractor.prompt.measures import Empirical, Gaussian

_HEAD, _VALUE = 4, 4
_SPREAD = 1.2
"""Root-mean-square standard deviation of the scores, over queries."""


def random_head(
    dimension: int = 8, *, samples: int | None = None, queries: int = 300, seed: int
) -> tuple[AttentionHead, Gaussian | Empirical, Gaussian | Empirical]:
    """Draws key, query and value matrices of a head, and the laws of its tokens and queries.

    Key and query matrices have 4 rows of normal entries, and are scaled so that scores over tokens
    have the variance 1.44 on average over queries.

    Args:
        dimension: Of tokens and queries.
        samples: None for Gaussian tokens with variances from 0.25 to 2 and standard normal queries;
            else how many tokens to draw from the sphere of radius ``sqrt(dimension)``, where a
            layer that normalizes leaves them.
        queries: Number of standard normal queries to draw beside sampled tokens.
        seed: Same seed, same head.

    Returns:
        The head, the law of the tokens and the law of the queries.
    """
    from attractor.prompt.head import AttentionHead
    from attractor.prompt.measures import Empirical, Gaussian, Sphere

    dimension = check_count("dimension", dimension, 1, 2**12)
    samples = None if samples is None else check_count("samples", samples, 2, 10**7)
    queries = check_count("queries", queries, 2, 10**7)
    random = generator(seed, purpose="random attention head")
    keys, own_queries = random.normal(size=(2, _HEAD, dimension))
    values = random.normal(size=(_VALUE, dimension)) / np.sqrt(dimension)
    standard = Gaussian.isotropic(dimension)
    if samples is None:
        basis = np.linalg.qr(random.normal(size=(dimension, dimension)))[0]
        covariance = basis * np.geomspace(0.25, 2, dimension) @ basis.T
        tokens, query_law = Gaussian(random.normal(size=dimension), covariance), standard
    else:
        sphere = Sphere(dimension, np.sqrt(dimension))
        tokens = Empirical(sphere.sample(samples, seed=seed))
        query_law = Empirical(standard.sample(queries, seed=seed))
    scores = keys.T @ own_queries
    scale = _SPREAD / np.sqrt(np.trace(scores.T @ np.asarray(tokens.covariance) @ scores))
    return AttentionHead(scale * scores, values), tokens, query_law
