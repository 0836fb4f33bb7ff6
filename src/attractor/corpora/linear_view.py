"""A corpus as data of a linear decoder on fixed vectors of its contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.embeddings import gaussian
from attractor.corpora.linear import EmbeddedContexts, compatibility, separability
from attractor.corpora.samples import counted_samples


def context_ranks(
    corpus: Corpus, samples: Int[np.ndarray, "n"]
) -> tuple[Int[np.ndarray, "n"], int]:
    """The rank of each context among the distinct ones in lexicographic order, and their number.

    Token numbers are compared; a context comes before those that it is the beginning of.

    A context is known by its length and the first suffix of the corpus, in their order, that begins
    with it. The order of suffixes is found by doubling: stretches of 2, 4, 8, ... tokens are
    numbered in their order, each from the numbers of its halves.
    """
    first = corpus.first[samples]
    length = corpus.positions[samples] + 1 - first
    longest = int(length.max())
    levels = _stretches(corpus, longest)
    suffixes = levels[-1]
    one_of = np.zeros(int(suffixes.max()) + 1, dtype=np.int64)
    one_of[suffixes] = np.arange(len(suffixes))
    ends = corpus.starts[1:][corpus.sentence_of]
    level = np.minimum(np.frexp(length)[1] - 1, len(levels) - 1)  # exact: lengths are integers

    def begins(place: Int[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
        """Whether the suffix at a place begins with the context."""
        inside = place + length <= ends[place]
        back = length - (1 << level)  # two stretches that overlap cover the context
        other = np.where(inside, place, first)
        same = levels[level, other] == levels[level, first]
        return inside & same & (levels[level, other + back] == levels[level, first + back])

    low, high = np.zeros(len(first), dtype=np.int64), suffixes[first].astype(np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        found = begins(one_of[middle])
        low, high = np.where(found, low, middle + 1), np.where(found, middle, high)
    numbers, ranks = np.unique(low * (longest + 1) + length, return_inverse=True)
    return ranks.ravel(), len(numbers)


def _stretches(corpus: Corpus, longest: int) -> Int[np.ndarray, "levels total"]:
    """Ranks of the stretches of 1, 2, 4, ... tokens from every place, cut where sentences end.

    Up to those that are at least as long as the longest context, or are all different.
    """
    place = np.arange(len(corpus.tokens))
    ends = corpus.starts[1:][corpus.sentence_of]
    ranks = [np.unique(corpus.tokens, return_inverse=True)[1].ravel().astype(np.int32)]
    size = 1
    while size < longest and ranks[-1].max() < len(place) - 1:
        behind = np.minimum(place + size, len(place) - 1)
        second = np.where(place + size < ends, ranks[-1][behind] + 1, 0)
        key = ranks[-1].astype(np.int64) * (len(place) + 1) + second
        ranks.append(np.unique(key, return_inverse=True)[1].ravel().astype(np.int32))
        size *= 2
    return np.stack(ranks)


_LARGEST_PROGRAM = 2 * 10**5
"""Nonzeros of the linear program that decides: a few seconds."""
_MOST_CONTEXTS = 10_000
"""Contexts in it, at most, where dimensions and tokens are few."""


@dataclass(frozen=True, eq=False)
class LinearView:
    """Soft labels of the distinct contexts of a corpus, and whether a linear decoder has them.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551): soft labels, compatible and separable data.

    Attributes:
        contexts: Number of distinct contexts.
        entropy: The entropy of the next token given the context, in nats: what no cross-entropy
            can go below.
        certain: The share of samples whose context is always followed by the same token.
        followers: Number of different tokens that follow a context, averaged over samples.
        dimension: Of the vectors of contexts: unit vectors where there are as many dimensions as
            contexts, else random ones of unit length.
        taken: Number of contexts, the most frequent, that the two answers are about; all where
            vectors are unit vectors, which separate everything.
        share: Their share of the samples.
        separable: Whether a matrix ties the tokens that follow each context and puts all others
            below them; None where it was not decided.
        compatible: Whether a matrix has the log-odds of the tokens that follow each context.
    """

    contexts: int
    entropy: float
    certain: float
    followers: float
    dimension: int
    taken: int
    share: float
    separable: bool | None
    compatible: bool

    def summary(self) -> dict[str, Any]:
        """The view as plain values of JSON."""
        return dict(vars(self))


def linear_view(corpus: Corpus, dimension: int, seed: int = 0) -> LinearView:
    """Examines the distinct contexts of a corpus, each with a vector of its own.

    Args:
        corpus: The corpus.
        dimension: Of the vectors.
        seed: Names the random ones.
    """
    samples, shares = counted_samples(corpus)
    labels, size = corpus.labels[samples], corpus.vocabulary_size
    which, contexts = context_ranks(corpus, samples)
    frequencies = np.bincount(which, shares)
    followers = np.bincount(which)  # a distinct sample is a context with one of its labels
    own = shares / frequencies[which]
    entropy = float((shares * np.log(1 / own)).sum())

    if contexts <= dimension:  # unit vectors: a column of the decoder for each context
        taken, separable, compatible = np.arange(contexts), True, True
    else:
        most = _LARGEST_PROGRAM // (2 * dimension * max(size - 1, 1))
        most = min(max(1, most), _MOST_CONTEXTS)
        taken = np.argsort(-frequencies, kind="stable")[:most]
        place = np.full(contexts, -1)
        place[taken] = np.arange(len(taken))
        known = place[which] >= 0
        probabilities = np.zeros((len(taken), size))
        probabilities[place[which[known]], labels[known]] = own[known]
        vectors = gaussian(len(taken), dimension, seed)
        chosen = EmbeddedContexts(vectors, probabilities, frequencies[taken])
        answer = separability(chosen)
        decided = bool(answer.separable) or bool(answer.inseparable)
        separable = bool(answer.separable) if decided else None
        compatible = bool(compatibility(chosen).compatible)
    return LinearView(
        contexts=contexts,
        entropy=entropy,
        certain=float(frequencies[followers == 1].sum()),
        followers=float(followers @ frequencies),
        dimension=min(dimension, contexts),
        taken=len(taken),
        share=float(frequencies[taken].sum()),
        separable=separable,
        compatible=compatible,
    )
