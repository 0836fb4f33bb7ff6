"""The lexicographic order of the contexts of a corpus, without writing any out."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from attractor.corpora.corpus import Corpus


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
