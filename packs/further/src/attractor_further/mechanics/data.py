"""Corpora whose labels conflict, and the hypotheses of statements on them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attractor.corpora import Corpus, CorpusCase
from attractor.corpora.mechanics import AttentionLimits, attention_limits, conflicting_corpora
from attractor.papers import Assumption, Check, once
from attractor.papers.data import generator, grammar


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


@once
def limits(case: CorpusCase) -> AttentionLimits:
    """The predicted limits of attention with labels among the tokens of their contexts."""
    return attention_limits(case.corpus, case.table)


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
