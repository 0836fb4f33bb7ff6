"""Numbers that tell the contexts of a corpus apart, without writing any out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures.occurrences import among, distinct


class Fingerprints:
    """A 64-bit number for each context; equal for equal contexts, and nearly surely for no others.

    It is ``sum_i a(i) r(x_i)`` modulo ``2^64`` with random ``a`` and ``r``. Two different contexts
    share one with probability ``2^-58`` or less: a product is zero where the powers of two in both
    factors make up 64, ``33 / 2^64`` of all. Those of samples add a number of the label.
    """

    def __init__(self, corpus: Corpus) -> None:
        """Draws the numbers of tokens, labels and places."""
        generator = np.random.default_rng(64)

        def draw(count: int) -> np.ndarray:
            return generator.integers(0, 2**64, count, dtype=np.uint64)

        self._corpus = corpus
        of_token, self._of_label = draw(corpus.vocabulary_size), draw(corpus.vocabulary_size)
        self._by_place = draw(int(corpus.lengths.max()) + 1)
        self._value = of_token[corpus.tokens]

    @cached_property
    def contexts(self) -> np.ndarray:
        """The number of each sample's context."""
        corpus = self._corpus
        if corpus.context_length is None:
            return self._sums[corpus.positions + 1] - self._sums[corpus.first]
        *_, (_, context) = self._windows()
        return context

    def samples(self, labels: Int[np.ndarray, "samples"]) -> np.ndarray:
        """The number of each sample: its context with a label."""
        return self.contexts + self._of_label[labels]

    def with_prefix_missing(self) -> Bool[np.ndarray, "samples"]:
        """Contexts with a prefix that is not the context of any sample."""
        corpus, known = self._corpus, distinct(self.contexts)
        if corpus.context_length is None:
            begin = self._sums[corpus.starts[corpus.sentence_of]]
            lacking = np.cumsum(np.append(False, ~among(self._sums[1:] - begin, known)))
            return lacking[corpus.positions] > lacking[corpus.first]
        missing = np.zeros(len(corpus.positions), dtype=bool)
        for inside, context in self._windows():
            missing |= inside & ~among(context, known)
        return missing

    @cached_property
    def _sums(self) -> np.ndarray:
        """Sums up to every place, where contexts begin with their sentence."""
        corpus = self._corpus
        within = np.arange(len(corpus.tokens)) - corpus.starts[corpus.sentence_of]
        terms = self._value * self._by_place[within]
        return np.cumsum(np.append(np.uint64(0), terms), dtype=np.uint64)

    def _windows(self) -> Iterator[tuple[Bool[np.ndarray, "samples"], np.ndarray]]:
        """The numbers of the first tokens of contexts, one more each time, and which go on."""
        first, last = self._corpus.first, self._corpus.positions
        context = np.zeros(len(last), dtype=np.uint64)
        for offset in range(int((last - first).max()) + 1):
            place = first + offset
            term = self._value[np.minimum(place, last)] * self._by_place[offset]
            context = context + np.where(place <= last, term, np.uint64(0))
            yield place < last, context
