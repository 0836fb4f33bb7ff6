"""Counts of tokens in contexts, without writing any context out, and the collocation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int, Integer

from attractor.corpora.corpus import Corpus
from attractor.support.checks import check_kinds

PORTION = 2**22
"""Entries of contexts written out at a time."""


def distinct(values: Integer[np.ndarray, "n"]) -> Integer[np.ndarray, "distinct"]:
    """The distinct values in increasing order, by sorting.

    ``np.unique`` hashes integers from NumPy 2.3 on, which takes a minute for twenty million.
    """
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def among(
    values: Integer[np.ndarray, "n"], ordered: Integer[np.ndarray, "known"]
) -> Bool[np.ndarray, "n"]:
    """Which values are in an increasing list."""
    if not len(ordered):
        return np.zeros(len(values), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return ordered[place] == values


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


class Prefixes:
    """Distinct tokens of prefixes: the first few of those of the whole sentence."""

    def __init__(self, corpus: Corpus) -> None:
        """Finds where tokens occur in their sentence for the first time."""
        new = first_occurrences(corpus)
        self._places = np.flatnonzero(new)
        self._until = np.cumsum(new)
        self._begin = (self._until - new)[corpus.starts[:-1]]  # those of earlier sentences
        self._corpus = corpus

    def counts(self, ends: Int[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        """How many distinct tokens the prefixes that end at some places have."""
        return self._until[ends] - self._begin[self._corpus.sentence_of[ends]]

    def in_portions(
        self, ends: Int[np.ndarray, "n"]
    ) -> Iterator[tuple[Int[np.ndarray, "entries"], Int[np.ndarray, "entries"]]]:
        """Distinct tokens of prefixes, a few prefixes at a time.

        Args:
            ends: The place where each prefix ends.

        Yields:
            For every distinct token of some prefixes the number of the prefix and the place where
            the token occurs first; in the order of both.
        """
        begin = self._begin[self._corpus.sentence_of[ends]]
        for number, place in stretches_in_portions(begin, self._until[ends] - 1):
            yield number, self._places[place]


def longest_prefixes(
    corpus: Corpus, samples: Int[np.ndarray, "n"], kind: Int[np.ndarray, "n"]
) -> tuple[Int[np.ndarray, "groups"], Int[np.ndarray, "n"]]:
    """The longest context of each sentence and kind; all others of them are its prefixes.

    Args:
        corpus: The corpus, whose contexts are whole prefixes.
        samples: Samples in increasing order.
        kind: What kind each is of.

    Returns:
        Places in ``samples`` of the longest, and which of them each sample is a prefix of.
    """
    sentence = corpus.sentence_of[corpus.positions[samples]]
    order = np.lexsort((kind, sentence))  # and by place, as samples are
    last = np.ones(len(order), dtype=bool)
    last[:-1] = np.diff(kind[order]).astype(bool) | np.diff(sentence[order]).astype(bool)
    group = np.zeros(len(order), dtype=np.int64)
    group[order] = np.cumsum(last) - last
    return order[last], group


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
    for number, place in stretches_in_portions(corpus.first[samples], corpus.positions[samples]):
        yield samples[number], place


def stretches_in_portions(
    first: Int[np.ndarray, "n"], last: Int[np.ndarray, "n"]
) -> Iterator[tuple[Int[np.ndarray, "entries"], Int[np.ndarray, "entries"]]]:
    """The places from each first to its last, a few stretches at a time, with their number."""
    lengths = last + 1 - first
    for portion in portions(lengths):
        number = np.arange(portion.start, portion.stop)
        yield np.repeat(number, lengths[portion]), ranges(first[portion], lengths[portion])


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


@dataclass(frozen=True, eq=False, repr=False)
class Collocation:
    """The map ``n`` from a token to the one that follows it where it is the whole context.

    Source: *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335), where it is injective: a label then determines the token that explains it.

    Attributes:
        next_token: ``n(x)`` for every token; -1 where no context consists of it alone, or where
            such contexts have different labels.
        conflicts: Tokens whose one-token contexts have different labels.
        vocabulary: The name of every token number.
    """

    next_token: Int[np.ndarray, "V"]
    conflicts: Int[np.ndarray, "n"]
    vocabulary: tuple[str, ...]

    @property
    def missing(self) -> Int[np.ndarray, "n"]:
        """Tokens that are no context by themselves."""
        return np.setdiff1d(np.flatnonzero(self.next_token < 0), self.conflicts)

    @cached_property
    def shared(self) -> Int[np.ndarray, "n"]:
        """Tokens that follow more than one token."""
        known = self.next_token[self.next_token >= 0]
        return np.flatnonzero(np.bincount(known, minlength=len(self.next_token)) > 1)

    @property
    def complete(self) -> bool:
        """Whether every token has one."""
        return bool((self.next_token >= 0).all())

    @property
    def injective(self) -> bool:
        """Whether no two tokens are followed by the same."""
        return not len(self.shared)

    @cached_property
    def inverse(self) -> Int[np.ndarray, "V"]:
        """The token that explains each label; -1 where none does, or more than one."""
        found = np.full(len(self.next_token), -1)
        known = np.flatnonzero(self.next_token >= 0)
        found[self.next_token[known]] = known
        found[self.shared] = -1
        return found

    def explaining(self, corpus: Corpus) -> Int[np.ndarray, "samples"]:
        """The token of each context that explains its label; -1 where there is none."""
        check_kinds(corpus=(corpus, Corpus))
        explains = self.inverse[corpus.labels]
        there = Occurrences(corpus).count(explains, corpus.first, corpus.positions) > 0
        return np.where(there, explains, -1)

    def words(self) -> dict[str, str]:
        """The map in words, where it is defined."""
        names = self.vocabulary
        known = np.flatnonzero(self.next_token >= 0)
        return {names[token]: names[self.next_token[token]] for token in known}

    def __repr__(self) -> str:
        known = int((self.next_token >= 0).sum())
        kind = "injective" if self.injective else f"{len(self.shared)} labels shared"
        return f"Collocation({known} of {len(self.next_token)} tokens, {kind})"


def collocation(corpus: Corpus) -> Collocation:
    """The collocation of a corpus, from the contexts of one token."""
    check_kinds(corpus=(corpus, Corpus))
    alone = corpus.first == corpus.positions
    query, label = corpus.queries[alone], corpus.labels[alone]
    size = corpus.vocabulary_size
    pairs = distinct(query * size + label)
    token, follower = np.divmod(pairs, size)
    conflicts = np.flatnonzero(np.bincount(token, minlength=size) > 1)
    found = np.full(size, -1)
    found[token] = follower
    found[conflicts] = -1
    return Collocation(found, conflicts, corpus.vocabulary)
