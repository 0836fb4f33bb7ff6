"""Measures of sparsity."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import ArrayLike, Float


def effective_support(
    weights: Float[np.ndarray, "*rows token"],
) -> Float[np.ndarray, "*rows"]:
    """The number of tokens that attention is spread over.

        (||s||_1 / ||s||_2)^2

    It is k for weights that are equal on k tokens and zero elsewhere, T for uniform ones and 1 for
    attention on one token. The scale of ``s`` does not matter.

    Args:
        weights: Attention weights, not negative; NaN where all of a row are zero.

    Source: the measure of sparsity in the experiment with vision transformers of *Max-Margin Token
    Selection in Attention Mechanism* (arXiv 2306.13596).
    """
    weights = np.asarray(weights, dtype=np.float64)
    largest = np.abs(weights).max(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = weights / largest  # squares of tiny weights would vanish
        return np.abs(scaled).sum(-1) ** 2 / (scaled**2).sum(-1)


def hoyer_sparsity(entries: ArrayLike) -> float:
    """Hoyer's measure of the sparsity of an array.

        (sqrt(n) - ||w||_1 / ||w||_2) / (sqrt(n) - 1)

    It is 0 where all entries are equally large and 1 where all but one are zero. The scale of
    ``w`` does not matter.

    Args:
        entries: An array of any shape, taken as one list; NaN if it has one entry or all are zero.

    Source: Hoyer, *Non-negative Matrix Factorization with Sparseness Constraints*, 2004.
    """
    flat = np.ravel(np.asarray(entries, dtype=np.float64))
    if flat.size < 2:
        return math.nan
    most = math.sqrt(flat.size)
    return float((most - np.sqrt(effective_support(flat))) / (most - 1))
