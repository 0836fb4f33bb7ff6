"""The most frequent samples of a corpus, few enough to train on."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from attractor.next_token.corpus import Corpus
from attractor.next_token.occurrences import ranges
from attractor.next_token.samples import distinct_samples


def frequent_samples(corpus: Corpus, work: int) -> tuple[Corpus, float]:
    """The distinct samples of a corpus, the most frequent of them where there are too many.

    Contexts of one token are always kept, as the collocation is theirs; a part of a realizable
    corpus that has them is realizable.

    Args:
        corpus: The corpus.
        work: The most work of a step of training: for each context the square of the longest one's
            length, for pairs of its tokens, and the size of the vocabulary, for its logits.

    Returns:
        The samples as contexts of their own over the same vocabulary, each counted by its
        frequency; and their share of the corpus, by weight.
    """
    distinct = distinct_samples(corpus)
    lengths = distinct.mask.sum(1)
    order = np.lexsort((np.arange(len(lengths)), -distinct.frequencies, lengths > 1))
    longest = np.maximum.accumulate(lengths[order])
    size = np.arange(1, len(order) + 1) * (longest**2 + corpus.vocabulary_size)
    count = max(int(np.searchsorted(size, work, side="right")), int((lengths == 1).sum()))
    chosen = np.sort(order[:count])
    share = float(distinct.frequencies[chosen].sum())
    return samples_alone(corpus, distinct.sample[chosen], distinct.frequencies[chosen]), share


def samples_alone(
    corpus: Corpus,
    samples: Int[np.ndarray, "n"],
    counts: np.ndarray,
    labels: Int[np.ndarray, "n"] | None = None,
) -> Corpus:
    """Some samples as contexts of their own, over the same vocabulary.

    Args:
        corpus: The corpus.
        samples: Which samples.
        counts: The weight of each.
        labels: Labels in place of their own.
    """
    first = corpus.first[samples]
    lengths = corpus.positions[samples] + 2 - first
    tokens = corpus.tokens[ranges(first, lengths)]
    if labels is not None:
        tokens[np.cumsum(lengths) - 1] = labels
    return Corpus(
        tokens,
        np.cumsum([0, *lengths]),
        corpus.vocabulary,
        every_prefix=False,
        counts=counts,
    )
