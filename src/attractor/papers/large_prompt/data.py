"""Heads that the statements on long prompts are checked on, with their token distributions."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from attractor.prompts.files.head import HeadCase
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.gaussian import Gaussian

Queries = Float[np.ndarray, "query e"]
"""Queries of a head."""
Outputs = Float[np.ndarray, "query v"]
"""Outputs of a head, one for each query."""


def gaussian_case(
    score_matrix: ArrayLike,
    value_matrix: ArrayLike,
    covariance: ArrayLike,
    query_covariance: ArrayLike | None = None,
    *,
    mean: ArrayLike | None = None,
    about: str,
) -> HeadCase:
    """A head on Gaussian tokens, with standard normal queries by default."""
    head = AttentionHead(score_matrix, value_matrix)
    d, e = head.token_dimension, head.query_dimension
    tokens = Gaussian(np.zeros(d) if mean is None else mean, covariance)
    queries = np.eye(e) if query_covariance is None else query_covariance
    return HeadCase(head, tokens, Gaussian(np.zeros(e), queries), about=about)


@cache
def line(deviation: float, score: float = 1.0) -> HeadCase:
    """Tokens and queries on a line: ``x ~ N(0, sigma^2)``, ``z ~ N(0, 1)``, ``V = 1``.

    Args:
        deviation: ``sigma``.
        score: The only entry of the score matrix.
    """
    about = f"tokens N(0, {deviation:g}^2), queries N(0, 1), U = {score:g}, V = 1"
    return gaussian_case([[score]], [[1.0]], [[deviation**2]], about=about)


@cache
def without_scores() -> HeadCase:
    """Tokens on a line that all have the same score."""
    return line(1.0, 0.0).replace(about="tokens N(0, 1), queries N(0, 1), K = 0, V = 1")


@cache
def random_head(
    seed: int,
    dimension: int = 2,
    *,
    rank: int | None = None,
    horizon: float = 1.0,
    centered: bool = False,
) -> HeadCase:
    """A random head on Gaussian tokens of a random covariance.

    Args:
        seed: Names what is random.
        dimension: Of tokens, queries and outputs.
        rank: Of the covariance; that of the dimension if None.
        horizon: The horizon, to which the score matrix is scaled.
        centered: Whether the tokens have mean zero.
    """
    draws = np.random.default_rng([seed, dimension, rank or dimension])
    U, V = draws.standard_normal((2, dimension, dimension)) / np.sqrt(dimension)
    factor = draws.standard_normal((dimension, rank or dimension))
    covariance = factor @ factor.T / dimension
    mean = np.zeros(dimension) if centered else draws.standard_normal(dimension)
    words = f"random head in R^{dimension}, covariance of rank {rank or dimension}, seed {seed}"
    case = gaussian_case(U, V, covariance, mean=mean, about=words)
    return case.replace(head=AttentionHead(U * horizon / case.horizon, V))


@cache
def fixed_query(query: tuple[float, ...], length: float = 1.0) -> HeadCase:
    """A head on standard normal tokens, with one query only: ``U`` and ``V`` a multiple of one."""
    d = len(query)
    case = gaussian_case(np.eye(d), length * np.eye(d), np.eye(d), about=f"the query {query}")
    return case.replace(queries=Empirical([query, query]))


def signs(dimension: int = 1) -> Empirical:
    """Random signs, as samples: every combination of signs as often as another."""
    found = np.array(list(product((-1.0, 1.0), repeat=dimension)))
    return Empirical(np.tile(found, (2, 1)))
