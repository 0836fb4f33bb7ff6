"""Corpora whose labels conflict, and the hypotheses of statements on them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.corpora import Corpus
from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.linear import EmbeddedContexts
from attractor.corpora.mechanics import AttentionLimits, attention_limits, conflicting_corpora
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.next_token.data import grammar
from attractor.support.randomness import generator

_MOST_UNKNOWNS = 4_000
"""Entries of a decoder up to which its regularization path is followed."""


@cache
def random_labels(seed: int, *, cyclic: bool, uneven: bool = False) -> CorpusCase:
    """Random contexts of four tokens with a random label among them, and random unit embeddings.

    Source: the experiments of *Mechanics of Next Token Prediction with Self-Attention* (arXiv
    2403.08081).

    Args:
        seed: Names what is random.
        cyclic: Whether some priority graph has a cycle, or none has.
        uneven: Whether samples occur one to four times each, or once.
    """
    drawn = conflicting_corpora(1, cyclic=cyclic, seed=seed)
    corpus, about = drawn.corpora[0], "conflicting labels" if cyclic else "labels without conflict"
    if uneven:
        random = generator(seed, purpose="counts of samples")
        corpus = Corpus(
            corpus.tokens,
            corpus.starts,
            corpus.vocabulary,
            every_prefix=corpus.every_prefix,
            counts=random.integers(1, 5, corpus.sentences),
        )
        about += ", some more often"
    return CorpusCase(corpus, drawn.embeddings[0], about=f"{about}, seed {seed}")


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


@once
def limits(case: CorpusCase) -> AttentionLimits:
    """The predicted limits of attention with labels among the tokens of their contexts."""
    return attention_limits(case.corpus, case.table)


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


def _made_of(contexts: list[list[int]], labels: list[int], table: Any = None) -> CorpusCase:
    corpus = Corpus.from_samples(contexts, labels)
    return CorpusCase(corpus, None if table is None else np.array(table))


def _labels_present(case: CorpusCase) -> Check:
    samples = case.samples
    lacking = int((~(samples.contexts == samples.labels[:, None]).any(-1)).sum())
    return Check(not lacking, f"{lacking:,} of {len(samples):,} contexts lack their label")


LABELS_PRESENT = Assumption(
    "labels in contexts", "Every label is a token of its context.", _labels_present, grammar
)


def _some_order(case: CorpusCase) -> Check:
    count = len(case.structure.priorities.edges)
    return Check(count > 0, f"{count:,} relations between tokens")


SOME_ORDER = Assumption(
    "some order",
    "Some context has a token that is not its label.",
    _some_order,
    lambda: _made_of([[0, 0], [1]], [0, 1]),
)


def _separable(case: CorpusCase) -> Check:
    status = limits(case).direction.status
    met = bool(np.isfinite(float(limits(case).direction.value)))
    return Check(met, f"the margin problem of the graphs is {status}")


SEPARABLE = Assumption(
    "separable",
    "Some matrix orders tokens as the priority graphs do.",
    _separable,
    lambda: _made_of([[1, 0, 2]], [0], [[2.0], [1.0], [3.0]]),
)


def _across(case: CorpusCase) -> Check:
    norm = float(limits(case).direction.value)
    return Check(norm > 0, f"the solution of the graphs' margin problem has norm {norm:.3g}")


PRIORITIES = Assumption(
    "strict priorities",
    "Some token comes before another and not after it.",
    _across,
    lambda: _made_of([[0, 1], [0, 1]], [0, 1]),
)


def _conflicts(case: CorpusCase) -> Check:
    count = int(case.structure.priorities.cyclic.sum())
    return Check(count > 0, f"{count:,} relations lie on cycles")


CONFLICTS = Assumption(
    "conflicts",
    "Some priority graph has a cycle.",
    _conflicts,
    lambda: random_labels(0, cyclic=False),
)


NO_CONFLICTS = CONFLICTS.negated(
    "no conflicts", "No priority graph has a cycle.", lambda: random_labels(0, cyclic=True)
)


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
