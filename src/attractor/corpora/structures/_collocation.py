"""The collocation: the token that follows each one-token context."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures.occurrences import Occurrences, distinct
from attractor.support.checks import check_kinds


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
