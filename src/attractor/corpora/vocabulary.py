"""Corpora with a smaller vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from attractor.corpora.corpus import Corpus
from attractor.support.checks import check_count

MOST_TRAINED = 101
"""The largest vocabulary trained on: a hundred tokens, and the one that all others become."""
OTHER = "<other>"
"""The name of the token that all rare ones become."""


def frequent_tokens(
    tokens: Int[np.ndarray, "total"],
    names: Sequence[str],
    most: int | None,
    weights: Float[np.ndarray, "total"] | None = None,
) -> tuple[Int[np.ndarray, "total"], tuple[str, ...], Int[np.ndarray, "kept"]]:
    """Numbers the most frequent tokens anew, and gives all others one number together.

    Of equally frequent tokens those with the smaller number are kept. Kept tokens stay in their
    order; tokens that do not occur are dropped.

    Args:
        tokens: Token numbers.
        names: The name of every number.
        most: Number of tokens that keep their names; None for all that occur.
        weights: The weight of each place.

    Returns:
        The new numbers, their names, and the old number of each token kept. Where other tokens
        were left, they have the last number, with the name ``OTHER``.

    Raises:
        InvalidInputError: If ``most`` is not a positive integer.
    """
    if most is not None:
        check_count("vocabulary", most)
    frequency = np.bincount(tokens, weights, minlength=len(names))
    order = np.argsort(-frequency, kind="stable")
    occurring = int(np.count_nonzero(frequency))
    kept = np.sort(order[:occurring][:most])
    number = np.full(len(names), len(kept), dtype=tokens.dtype)
    number[kept] = np.arange(len(kept), dtype=tokens.dtype)
    new_names = [str(names[old]) for old in kept.tolist()]
    if len(kept) < occurring:
        other = OTHER
        while other in new_names:
            other = f"<{other}>"
        new_names.append(other)
    return number[tokens], tuple(new_names), kept


def with_frequent_tokens(
    corpus: Corpus, most: int | None
) -> tuple[Corpus, Int[np.ndarray, "kept"]]:
    """The corpus in which all but the most frequent tokens are one token.

    Args:
        corpus: The corpus.
        most: Number of tokens that keep their names.

    Returns:
        The corpus, and the old number of each token kept.
    """
    weights = np.repeat(corpus.counts, corpus.lengths)
    tokens, names, kept = frequent_tokens(corpus.tokens, corpus.vocabulary, most, weights)
    return replace(corpus, tokens=tokens, vocabulary=names), kept


def with_context_length(corpus: Corpus, context_length: int | None) -> Corpus:
    """The corpus whose contexts are the last few tokens before each label; None for all."""
    return replace(corpus, context_length=context_length)
