"""A gradient oracle in arbitrary precision, and data on which every loser has the same gap."""

from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from attractor.tokens import Tokens


def exact_gradient(tokens, v, W, loss="logistic"):
    """Gradient of the mean loss in W, as (unit Frobenius direction, log of its norm).

    Digits cover the cancellation of ``p * (g - <p, g>)``, written here as the textbooks do.
    """
    W, v = np.asarray(W), np.asarray(v)
    spread = float(np.abs(W).sum() * np.abs(tokens.keys).max() * np.abs(tokens.queries).max()) + 1
    with mpmath.workdps(60 + int(min(spread, 30_000) / 2.3)):
        exact = np.vectorize(mpmath.mpf, otypes=[object])
        keys, values, queries = exact(tokens.keys), exact(tokens.values), exact(tokens.queries)
        W, v = exact(W), exact(v)
        total = np.zeros(W.shape, dtype=object)
        for i in range(tokens.sequences):
            for k in range(tokens.queries_per_sequence):
                kept = tokens.mask[i, k]
                x, token_values = keys[i][kept], values[i][kept] @ v
                scores = x @ (W @ queries[i, k])
                weights = np.array([mpmath.exp(s - max(scores)) for s in scores])
                p = weights / weights.sum()
                f, y = p @ token_values, mpmath.mpf(tokens.labels[i, k])
                slope = {
                    "logistic": lambda f=f, y=y: -y / (1 + mpmath.exp(y * f)),
                    "exponential": lambda f=f, y=y: -y * mpmath.exp(-y * f),
                    "linear": lambda y=y: -y,
                }[loss]()
                q = slope * p * (token_values - f)
                total = total + np.outer(q @ x, queries[i, k])
        total = total / (tokens.sequences * tokens.queries_per_sequence)
        norm = mpmath.sqrt(sum(entry**2 for entry in total.ravel()))
        if norm == 0:
            return np.zeros(W.shape), -np.inf
        return (total / norm).astype(float), float(mpmath.log(norm))


def matrix_for_scores(keys, queries, scores):
    """A matrix under which token t of sequence i has (up to rounding) the score asked for."""
    effects = np.stack([np.linalg.pinv(x) @ s for x, s in zip(keys, scores, strict=True)])
    return effects.T @ np.linalg.pinv(queries.T)


def equal_gap_problem(gap, seed, *, n=3, length=5, d=6, dtype=np.float64):
    """Tokens, head vector and W: one winner a row, every loser the same gap below it."""
    random = np.random.default_rng(seed)
    keys = random.normal(size=(n, length, d)).astype(dtype)
    queries = random.normal(size=(n, d)).astype(dtype)
    labels = np.where(random.random(n) < 0.5, -1.0, 1.0)
    v = random.normal(size=d).astype(dtype)
    scores = np.zeros((n, length))
    scores[np.arange(n), random.integers(length, size=n)] = gap
    W = matrix_for_scores(keys.astype(float), queries.astype(float), scores).astype(dtype)
    return Tokens(keys, queries, labels), v, W


@pytest.fixture
def oracle():
    return SimpleNamespace(
        gradient=exact_gradient, matrix=matrix_for_scores, equal_gap=equal_gap_problem
    )
