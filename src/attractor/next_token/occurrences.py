"""Counts of tokens in the contexts of a corpus, without writing any context out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int

from attractor.next_token.corpus import Corpus

PORTION = 2**22
"""Entries of contexts written out at a time."""


class Occurrences:
    """Counts tokens in stretches of a corpus, by search in a sorted list of all places."""

    def __init__(self, corpus: Corpus) -> None:
        """Sorts the places of every token."""
        self.corpus = corpus
        self._total = len(corpus.tokens)
        self._keys = np.sort(corpus.tokens * self._total + np.arange(self._total))

    def count(
        self, token: Int[np.ndarray, "n"], first: Int[np.ndarray, "n"], last: Int[np.ndarray, "n"]
    ) -> Int[np.ndarray, "n"]:
        """Counts of each token from one place to another, both included; 0 for the token -1."""
        base = np.where(token < 0, 0, token) * self._total
        upper = np.searchsorted(self._keys, base + last, side="right")
        lower = np.searchsorted(self._keys, base + first, side="left")
        return np.where(token < 0, 0, upper - lower)

    def most_frequent(self) -> Int[np.ndarray, "samples"]:
        """The count of the most frequent token of each context."""
        corpus = self.corpus
        if corpus.context_length is not None:
            most = np.zeros(len(corpus.positions), dtype=np.int64)
            for sample, place in contexts_in_portions(corpus):
                first, last = corpus.first[sample], corpus.positions[sample]
                np.maximum.at(most, sample, self.count(corpus.tokens[place], first, last))
            return most
        begin = corpus.starts[corpus.sentence_of]
        so_far = self.count(corpus.tokens, begin, np.arange(self._total))
        # A sentence's numbers lie above those of all before it, so that one pass serves all.
        lift = corpus.sentence_of * (self._total + 1)
        running = np.maximum.accumulate(so_far + lift) - lift
        return running[corpus.positions]


def first_occurrences(corpus: Corpus) -> Bool[np.ndarray, "total"]:
    """True where a token occurs in its sentence for the first time."""
    key = corpus.sentence_of * corpus.vocabulary_size + corpus.tokens
    _, places = np.unique(key, return_index=True)
    first = np.zeros(len(key), dtype=bool)
    first[places] = True
    return first


def contexts_in_portions(
    corpus: Corpus, samples: Int[np.ndarray, "chosen"] | None = None
) -> Iterator[tuple[Int[np.ndarray, "entries"], Int[np.ndarray, "entries"]]]:
    """Contexts written out a few at a time.

    Args:
        corpus: The corpus.
        samples: Which samples; default: all.

    Yields:
        For every token of some contexts the sample and the place in ``corpus.tokens``.
    """
    samples = np.arange(len(corpus.positions)) if samples is None else samples
    first, last = corpus.first[samples], corpus.positions[samples]
    for portion in portions(last + 1 - first):
        lengths = (last + 1 - first)[portion]
        yield np.repeat(samples[portion], lengths), ranges(first[portion], lengths)


def portions(sizes: Int[np.ndarray, "n"]) -> Iterator[slice]:
    """Cuts a list into stretches of about ``PORTION`` in size, each of one element at least."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + PORTION, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def ranges(first: Int[np.ndarray, "n"], lengths: Int[np.ndarray, "n"]) -> Int[np.ndarray, "total"]:
    """The ranges ``first, first + 1, ...`` of some lengths, concatenated."""
    ends = np.cumsum(lengths)
    steps = np.arange(ends[-1] if len(ends) else 0)
    return steps + np.repeat(first - (ends - lengths), lengths)
