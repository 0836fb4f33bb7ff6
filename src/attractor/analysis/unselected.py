"""Softmax probability off the tokens selected."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attractor.tokens import Tokens


def log_unselected(
    tokens: Tokens,
    chosen: Bool[np.ndarray, "sequence query token"],
    W: Float[np.ndarray, "*batch d e"],
) -> Float[np.ndarray, "*batch sequence query"]:
    """Logarithm of the softmax probability off the chosen tokens, right however small it is.

    NaN where differences of scores overflow.

    Args:
        tokens: The data set, without an axis of instances.
        chosen: The tokens chosen.
        W: Matrices, finite.
    """
    return log_off(tokens.scores(W), chosen)


def log_off(
    scores: Float[np.ndarray, "*batch sequence query token"],
    chosen: Bool[np.ndarray, "*#batch sequence query token"],
) -> Float[np.ndarray, "*batch sequence query"]:
    """The same from attention scores."""
    with np.errstate(over="ignore", invalid="ignore"):
        everything = np.logaddexp.reduce(scores, axis=-1)
        return np.logaddexp.reduce(np.where(chosen, -np.inf, scores), axis=-1) - everything


def log_mean(logs: Float[np.ndarray, "*batch row"]) -> Float[np.ndarray, "*batch"]:
    """Logarithm of the mean of numbers given by their logarithms."""
    return np.logaddexp.reduce(logs, axis=-1) - np.log(logs.shape[-1])
