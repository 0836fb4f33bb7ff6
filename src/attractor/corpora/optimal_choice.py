"""A choice of optimal tokens for each query, with which many samples agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures.occurrences import (
    Occurrences,
    Prefixes,
    among,
    distinct,
    first_occurrences,
    portions,
    ranges,
    stretches_in_portions,
)

_Stretches = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Pairs, and the samples, from one to another, whose contexts have their token."""


def agreeing_samples(
    corpus: Corpus, kept: Int[np.ndarray, "n"], explaining: Int[np.ndarray, "samples"]
) -> Bool[np.ndarray, "samples"]:
    """Samples that agree with a choice of optimal tokens for each query; others are not asked.

    Of each query the tokens that explain samples are tried, those that explain most first, and
    each is taken if the samples that it lets agree weigh more than those that it stops. A sample
    agrees where the one optimal token of its context is the one that explains its label.

    All queries are asked side by side. A token is in the contexts of a sentence from its first
    place on, so that a stretch of samples stands for them, and no context is written out.

    Args:
        corpus: The corpus.
        kept: The samples to ask, in increasing order.
        explaining: The token that explains the label of each sample; it is in the context.
    """
    agree = np.ones(len(corpus.positions), dtype=bool)
    first, last, queries = corpus.first[kept], corpus.positions[kept], corpus.queries[kept]
    several = Occurrences(corpus).count(queries, first, last) < last + 1 - first
    samples = kept[several]
    samples = samples[np.argsort(corpus.queries[samples], kind="stable")]
    if len(samples):
        agree[samples] = _Choice(corpus, samples, explaining).agreeing()
    return agree


class _Choice:
    """Samples in the order of their queries and places, and the pairs that are tried.

    A pair is a query and a token that explains some of its samples. Samples of one query and
    sentence are a group, of contexts that are prefixes; else each sample is a group of its own.
    """

    def __init__(
        self, corpus: Corpus, samples: Int[np.ndarray, "n"], explaining: Int[np.ndarray, "samples"]
    ) -> None:
        size = corpus.vocabulary_size
        self._corpus, self._samples = corpus, samples
        self._places, self._queries = corpus.positions[samples], corpus.queries[samples]
        self._sentences, self._weights = corpus.sentence_of[self._places], corpus.weights[samples]
        key = self._queries * size + explaining[samples]
        self._pairs, self._own = np.unique(key, return_inverse=True)
        worth, query = np.bincount(self._own, self._weights), self._pairs // size
        order = np.lexsort((self._pairs, -worth, query))
        self._turn = np.empty(len(order), dtype=np.int64)
        self._turn[order] = np.arange(len(order)) - np.searchsorted(query, query)
        new = np.ones(len(samples), dtype=bool)
        if corpus.context_length is None:
            new[1:] = (np.diff(self._queries) != 0) | (np.diff(self._sentences) != 0)
        self._groups = np.flatnonzero(new)
        self._ends = np.append(self._groups[1:], len(samples))
        self._keys = self._queries * len(corpus.tokens) + self._places
        self._prefixes = Prefixes(corpus)
        first = np.flatnonzero(first_occurrences(corpus))
        key = corpus.sentence_of[first] * size + corpus.tokens[first]
        order = np.argsort(key)
        self._known, self._first = key[order], first[order]

    @property
    def _lengths(self) -> Int[np.ndarray, "groups"]:
        """Tokens to write out of the longest context of each group."""
        last = self._places[self._ends - 1]
        if self._corpus.context_length is None:
            return self._prefixes.counts(last)
        return last + 1 - self._corpus.first[self._samples]

    def agreeing(self) -> Bool[np.ndarray, "n"]:
        """Which samples agree with the tokens that are taken."""
        optimal = np.zeros(len(self._samples), dtype=np.int64)  # optimal tokens in the context
        explained = np.zeros(len(self._samples), dtype=bool)  # by one of them
        for pair, low, high in self._stretches():
            order = np.lexsort((low, self._turn[pair]))
            turns = np.flatnonzero(np.diff(self._turn[pair[order]])) + 1
            for now in np.split(order, turns):
                lengths = (high - low)[now]
                sample, tried = ranges(low[now], lengths), np.repeat(pair[now], lengths)
                mine = self._own[sample] == tried
                gained = mine & (optimal[sample] == 0)
                lost = ~mine & (optimal[sample] == 1) & explained[sample]
                change = self._weights[sample] * (gained.astype(float) - lost)
                which = np.cumsum(np.append(False, np.diff(tried) != 0))
                taken = (np.bincount(which, change) > 0)[which]
                optimal[sample[taken]] += 1
                explained[sample[taken & mine]] = True
        return (optimal == 1) & explained

    def _stretches(self) -> Iterator[_Stretches]:
        """The stretches of samples whose contexts have the token of a pair, some queries at a time.

        Of prefixes either the tokens of contexts are looked up among those that are tried, or the
        other way round, whichever is less.
        """
        size, prefixes = self._corpus.vocabulary_size, self._corpus.context_length is None
        queries, begin = np.unique(self._queries[self._groups], return_index=True)
        groups = np.diff(np.append(begin, len(self._groups)))
        first, last = np.searchsorted(self._pairs, [queries * size, (queries + 1) * size])
        written = np.add.reduceat(self._lengths, begin)
        looked_up = (last - first) * groups if prefixes else written
        for some in portions(np.minimum(written, looked_up)):
            write = np.arange(some.start, some.stop)[(written <= looked_up)[some]]
            look = np.arange(some.start, some.stop)[(written > looked_up)[some]]
            found = [*self._of_contexts(ranges(begin[write], groups[write]))]
            # Every pair of a query with every group of it.
            group = ranges(begin[look], groups[look])
            tried = np.repeat(last[look] - first[look], groups[look])
            pair = ranges(np.repeat(first[look], groups[look]), tried)
            found.append(self._of_pairs(pair, np.repeat(group, tried)))
            pair, low, high = map(np.concatenate, zip(*found, strict=True))
            yield pair, low, high

    def _of_contexts(self, groups: Int[np.ndarray, "n"]) -> Iterator[_Stretches]:
        """Those of groups, by the tokens of their contexts."""
        corpus, last = self._corpus, self._places[self._ends[groups] - 1]
        if corpus.context_length is None:
            portion = self._prefixes.in_portions(last)
        else:
            portion = stretches_in_portions(corpus.first[self._samples[groups]], last)
        for number, place in portion:
            group = groups[number]
            key = self._queries[self._groups[group]] * corpus.vocabulary_size + corpus.tokens[place]
            there = among(key, self._pairs)
            pair = np.searchsorted(self._pairs, key[there])
            if corpus.context_length is None:
                yield self._from(pair, group[there], place[there])
            else:
                once = distinct(group[there] * len(self._pairs) + pair)
                group, pair = np.divmod(once, len(self._pairs))
                yield pair, group, group + 1

    def _of_pairs(self, pair: Int[np.ndarray, "n"], group: Int[np.ndarray, "n"]) -> _Stretches:
        """Those of pairs and groups, by the first place of the token in the sentence."""
        size = self._corpus.vocabulary_size
        key = self._sentences[self._groups[group]] * size + self._pairs[pair] % size
        there = among(key, self._known)
        place = self._first[np.searchsorted(self._known, key[there])]
        return self._from(pair[there], group[there], place)

    def _from(
        self, pair: Int[np.ndarray, "n"], group: Int[np.ndarray, "n"], place: Int[np.ndarray, "n"]
    ) -> _Stretches:
        """The samples of groups from a place of their sentence on."""
        query = self._queries[self._groups[group]]
        low = np.searchsorted(self._keys, query * len(self._corpus.tokens) + place)
        high = self._ends[group]
        some = low < high
        return pair[some], low[some], high[some]
