"""Heads on tokens that take finitely many values."""

from __future__ import annotations

from functools import cache

import numpy as np

from attractor.papers import Claims
from attractor.prompts import AttentionHead, HeadCase
from attractor.prompts.measures import Empirical, Gaussian
from attractor_further.in_context_convergence import PAPER

CLAIMS = Claims(PAPER, HeadCase)


@cache
def features(count: int = 4, *, dominant: int = 1) -> HeadCase:
    """Tokens that are one of some orthonormal features; queries are these features.

    Args:
        count: Number of features.
        dominant: How often the first one occurs for every time that another one does.
    """
    basis = np.eye(count)
    tokens = np.concatenate([np.repeat(basis[:1], dominant, axis=0), basis[1:]])
    tokens = np.tile(tokens, (3, 1))  # a file holds some samples of every coordinate
    about = f"{count} orthonormal features, the first {dominant} times as frequent as another"
    return HeadCase(AttentionHead(basis, basis), Empirical(tokens), Empirical(basis), about=about)


@cache
def random_features(seed: int, count: int = 5, dimension: int = 3) -> HeadCase:
    """A random head on tokens that take a few random values, with different probabilities."""
    draws = np.random.default_rng([seed, 41, count, dimension])
    values = draws.standard_normal((count, dimension))
    tokens = np.repeat(values, draws.integers(2, 9, count), axis=0)
    U, V = draws.standard_normal((2, dimension, dimension)) / np.sqrt(dimension)
    queries = Gaussian.isotropic(dimension)
    about = f"{count} random values in R^{dimension}, seed {seed}"
    return HeadCase(AttentionHead(U, V), Empirical(tokens), queries, about=about)
