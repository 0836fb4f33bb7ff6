"""The most frequent samples of a corpus, few enough to train on."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.samples import counted_samples
from attractor.corpora.structures.occurrences import ranges


def frequent_samples(
    corpus: Corpus,
    work: int,
    samples: Int[np.ndarray, "n"] | None = None,
    labels: Int[np.ndarray, "samples"] | None = None,
) -> tuple[Corpus, float]:
    """The distinct samples of a corpus, the most frequent of them where there are too many.

    Contexts of one token are always kept, as the collocation is theirs; a part of a realizable
    corpus that has them is realizable.

    Args:
        corpus: The corpus.
        work: The most work of a step of training: for each context the square of the longest one's
            length, for pairs of its tokens, and the size of the vocabulary, for its logits.
        samples: Which samples to choose among; default: all.
        labels: Labels of all samples, in place of their own.

    Returns:
        The samples as contexts of their own over the same vocabulary, each counted by its
        frequency; and their share of all that were chosen among, by weight.
    """
    distinct, frequencies = counted_samples(corpus, samples, labels)
    lengths = corpus.positions[distinct] + 1 - corpus.first[distinct]
    order = np.lexsort((np.arange(len(lengths)), -frequencies, lengths > 1))
    longest = np.maximum.accumulate(lengths[order])
    size = np.arange(1.0, len(order) + 1) * (longest**2 + corpus.vocabulary_size)
    count = max(int(np.searchsorted(size, work, side="right")), int((lengths == 1).sum()))
    chosen = np.sort(order[:count])
    frequencies, distinct = frequencies[chosen], distinct[chosen]
    share = float(frequencies.sum())
    own = None if labels is None else labels[distinct]
    return samples_alone(corpus, distinct, frequencies, own), share


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
