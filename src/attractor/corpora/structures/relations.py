"""The relations between tokens that the samples of a corpus state, query by query."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures.occurrences import (
    Prefixes,
    contexts_in_portions,
    distinct,
    longest_prefixes,
)
from attractor.support.errors import InvalidInputError

_MOST = 5 * 10**7
"""Distinct relations that are kept: more than a person, or a solver, can use."""


def relations(
    corpus: Corpus, preferred: Int[np.ndarray, "samples"]
) -> Int[np.ndarray, "relations 3"]:
    """Every relation ``(query, preferred, other)`` that a sample states, once.

    A sample puts its preferred token before every other token of its context.

    Args:
        corpus: The corpus.
        preferred: The preferred token of each sample; -1 where the sample states nothing.

    Returns:
        The relations in increasing order.

    Raises:
        InvalidInputError: If there are more than can be used.
    """
    if corpus.context_length is None:
        found = _of_prefixes(corpus, preferred)
    else:
        found = _of_windows(corpus, preferred)
    size = corpus.vocabulary_size
    rest, other = np.divmod(found, size)
    query, before = np.divmod(rest, size)
    return np.stack([query, before, other], axis=1)


def _of_prefixes(corpus: Corpus, preferred: Int[np.ndarray, "samples"]) -> Int[np.ndarray, "n"]:
    """Keys of the relations, where contexts are whole prefixes.

    Prefixes of one sentence with the same query and preferred token grow, so that the longest
    suffices; and its distinct tokens are the first few of those of the sentence.
    """
    size = corpus.vocabulary_size
    samples = np.flatnonzero(preferred >= 0)
    pair = corpus.queries[samples] * size + preferred[samples]
    longest, _ = longest_prefixes(corpus, samples, pair)
    ends, pair = corpus.positions[samples[longest]], pair[longest]
    prefixes = Prefixes(corpus)
    stated = prefixes.counts(ends) - 1  # less the preferred token, where it is in the context
    # What one sentence states is all different.
    alone = np.bincount(corpus.sentence_of[ends], stated)
    _check_count(int(alone.max(initial=0)))
    merged = _Merged()
    for number, place in prefixes.in_portions(ends):
        merged.add(pair[number], corpus.tokens[place], size)
    return merged.result()


def _of_windows(corpus: Corpus, preferred: Int[np.ndarray, "samples"]) -> Int[np.ndarray, "n"]:
    """Keys of the relations, where contexts are the last few tokens."""
    size = corpus.vocabulary_size
    pair = corpus.queries * size + preferred
    merged = _Merged()
    for sample, place in contexts_in_portions(corpus, np.flatnonzero(preferred >= 0)):
        merged.add(pair[sample], corpus.tokens[place], size)
    return merged.result()


class _Merged:
    """Distinct keys of portion after portion."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._size = self._merged = 0

    def add(self, pair: np.ndarray, other: np.ndarray, size: int) -> None:
        """Adds relations, less those of a token to itself."""
        keys = distinct((pair * size + other)[pair % size != other])
        self._parts.append(keys)
        self._size += len(keys)
        if self._size > 2 * max(self._merged, 2**22):
            self.result()

    def result(self) -> Int[np.ndarray, "n"]:
        """All distinct keys so far, in increasing order."""
        joined = np.concatenate([np.zeros(0, dtype=np.int64), *self._parts])
        merged = joined if len(self._parts) == 1 else distinct(joined)
        _check_count(len(merged))
        self._parts, self._size, self._merged = [merged], len(merged), len(merged)
        return merged


def _check_count(count: int) -> None:
    if count > _MOST:
        raise InvalidInputError(
            "corpus",
            f"it states more than {_MOST:,} relations between tokens",
            "Give a smaller vocabulary, or a context_length",
        )
