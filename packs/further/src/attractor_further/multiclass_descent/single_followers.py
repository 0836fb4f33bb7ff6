"""Corpora where one token follows each context: multiclass classification, stored associations."""

from __future__ import annotations

from functools import cache

import numpy as np

from attractor.corpora import Corpus, CorpusCase
from attractor.corpora.linear import EmbeddedContexts
from attractor.papers import Assumption, Check
from attractor.papers.data import generator
from attractor_further.linear_next_token.data import SEVERAL_FOLLOWERS, followers, random_followers

_MOST_COMMON = 1_000
"""How often the commonest association occurs."""


@cache
def random_classes(seed: int, contexts: int = 8, vocabulary: int = 5) -> CorpusCase:
    """Random contexts of two tokens, some more often, each followed by one; every token follows."""
    random = generator(seed, purpose="classes of contexts")
    numbers = random.permutation(vocabulary**2)[:contexts].tolist()
    labels = np.append(
        random.permutation(vocabulary), random.integers(vocabulary, size=contexts - vocabulary)
    )
    counts = random.integers(1, 4, size=contexts)
    every = [divmod(number, vocabulary) for number in numbers]
    corpus = Corpus.from_samples(every, labels.tolist(), range(vocabulary), counts=counts.tolist())
    return CorpusCase(corpus, about=f"classes of contexts, seed {seed}")


@cache
def associations(seed: int, items: int = 12, exponent: float = 1.0) -> CorpusCase:
    """Items, each followed by an answer of its own, as often as one over a power of its rank.

    Source: *Muon in Associative Memory Learning* (arXiv 2602.05725), power-law frequencies.
    """
    answers = generator(seed, purpose="answers").permutation(items).tolist()
    counts = np.rint(_MOST_COMMON * np.arange(1.0, items + 1) ** -exponent).astype(np.int64)
    asked = [[item] for item in range(items)]
    corpus = Corpus.from_samples(asked, answers, range(items), counts=counts.tolist())
    return CorpusCase(corpus, about=f"{items} associations, exponent {exponent:g}, seed {seed}")


def orthonormal_contexts(case: CorpusCase) -> EmbeddedContexts:
    """The distinct contexts of a corpus with what follows each, and orthonormal embeddings."""
    shares = followers(case)
    frequencies = shares.sum(-1)
    return EmbeddedContexts(np.eye(len(shares)), shares / frequencies[:, None], frequencies)


ONE_FOLLOWER = SEVERAL_FOLLOWERS.negated(
    "one follower",
    "Every context is always followed by the same token.",
    lambda: random_followers(0),
)


def _own_answers(case: CorpusCase) -> Check:
    contexts, tokens = np.nonzero(followers(case))
    shared = len(contexts) - len(np.unique(tokens))
    return Check(not shared, f"{shared:,} of {len(contexts):,} answers are shared")


OWN_ANSWERS = Assumption(
    "own answers",
    "No two contexts are followed by the same token.",
    _own_answers,
    lambda: random_classes(0),
)
