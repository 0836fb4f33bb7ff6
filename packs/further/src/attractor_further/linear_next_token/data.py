"""Corpora with several followers of a context, their embedded contexts, and hypotheses on them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.corpora import Corpus, CorpusCase
from attractor.corpora.linear import EmbeddedContexts
from attractor.papers import Assumption, Check, Claims
from attractor.papers.data import generator
from attractor_further.linear_next_token import PAPER
from attractor_further.mechanics.data import random_labels

CLAIMS = Claims(PAPER, CorpusCase)
_MOST_UNKNOWNS = 4_000
"""Entries of a decoder up to which its regularization path is followed."""


def random_followers(seed: int, contexts: int = 5, vocabulary: int = 5) -> CorpusCase:
    """Random contexts of two tokens, each followed by one to three tokens, some more often."""
    random = generator(seed, purpose="several followers")
    every, labels, counts = [], [], []
    for number in random.permutation(vocabulary**2)[:contexts].tolist():
        for label in random.permutation(vocabulary)[: random.integers(1, 4)].tolist():
            every.append(divmod(number, vocabulary))
            labels.append(label)
            counts.append(int(random.integers(1, 4)))
    corpus = Corpus.from_samples(every, labels, range(vocabulary), counts=counts)
    return CorpusCase(corpus, about=f"several followers of a context, seed {seed}")


def embedded_contexts(
    case: CorpusCase, seed: int, dimension: int | None = None
) -> EmbeddedContexts:
    """The distinct contexts of a corpus with what follows each, and random unit embeddings.

    Args:
        case: The data.
        seed: Names the embeddings.
        dimension: Of the embeddings; default: two more than there are contexts.
    """
    shares = followers(case)
    dimension = len(shares) + 2 if dimension is None else dimension
    drawn = generator(seed, purpose="context embeddings").normal(size=(len(shares), dimension))
    drawn /= np.linalg.norm(drawn, axis=-1, keepdims=True)
    frequencies = shares.sum(-1)
    return EmbeddedContexts(drawn, shares / frequencies[:, None], frequencies)


def followers(case: CorpusCase) -> Float[np.ndarray, "m V"]:
    """The frequency with which each token follows each distinct context."""
    samples = case.samples
    _, number = np.unique(samples.contexts, axis=0, return_inverse=True)
    shares = np.zeros((number.max() + 1, case.corpus.vocabulary_size))
    np.add.at(shares, (number, samples.labels), samples.frequencies)
    return shares


def _few(case: CorpusCase) -> Check:
    count = len(np.unique(case.samples.contexts, axis=0))
    unknowns = (count + 2) * case.corpus.vocabulary_size
    return Check(
        unknowns <= _MOST_UNKNOWNS,
        f"a decoder of {count:,} contexts would have {unknowns:,} entries",
    )


FEW_CONTEXTS = Assumption(
    "few contexts",
    "A decoder of embeddings with more dimensions than contexts has at most 4,000 entries.",
    _few,
    lambda: random_followers(0, contexts=100, vocabulary=50),
)


def _not_everything(case: CorpusCase) -> Check:
    full = bool((followers(case) > 0).all())
    return Check(not full, "every token follows every context" if full else "some never follow")


SPARSE = Assumption(
    "sparse followers",
    "Some token never follows some context.",
    _not_everything,
    lambda: CorpusCase(Corpus.from_samples([[0], [0], [1], [1]], [0, 1, 0, 1])),
)


def _several(case: CorpusCase) -> Check:
    count = int(((followers(case) > 0).sum(-1) > 1).sum())
    return Check(count > 0, f"{count:,} contexts are followed by different tokens")


SEVERAL_FOLLOWERS = Assumption(
    "several followers",
    "Some context is followed by different tokens, so that there are odds within supports.",
    _several,
    lambda: random_labels(0, cyclic=True),
)
