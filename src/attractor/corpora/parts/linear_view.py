"""A corpus as data of a linear decoder on fixed vectors of its contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attractor.corpora.corpus import Corpus
from attractor.corpora.embedded.embeddings import gaussian
from attractor.corpora.linear import EmbeddedContexts, compatibility, separability
from attractor.corpora.samples import counted_samples
from attractor.corpora.structures.context_order import context_ranks

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
