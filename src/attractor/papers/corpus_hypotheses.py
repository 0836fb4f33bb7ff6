"""The hypotheses of next-token statements on a corpus, as checks that run on it."""

from __future__ import annotations

import numpy as np

from attractor.corpora.embeddings import are_orthonormal, orthonormality_error
from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.structures.structure import REALIZABILITY, REPETITION
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.next_token.data import (
    grammar,
    missing_relations,
    of_words,
    outnumbered,
    with_gaussian_embeddings,
)


def _realizable(case: CorpusCase) -> Check:
    if case.corpus.vocabulary_size < 2:
        return Check(False, "the vocabulary has a single token")
    for check in case.structure.assumptions:
        if check.name in REALIZABILITY and not check.met:
            return Check(False, f"{check.name}: {check.found}")
    return Check(True, "collocation and orders exist, and no token is confused")


REALIZABLE = Assumption(
    "realizable",
    "Every token has a collocation of its own, which explains every label, and the orders are "
    "free of cycles and of confused tokens.",
    _realizable,
    lambda: of_words("S V O P", "V O P", "O P P", "P S V", "S V P"),
)


def _frequent(case: CorpusCase) -> Check:
    check = case.structure.assumption(REPETITION)
    return Check(check.met, check.found)


FREQUENT_OPTIMAL = Assumption(
    REPETITION,
    "In every context the optimal token occurs at least as often as any other.",
    _frequent,
    outnumbered,
)


def _choice(case: CorpusCase) -> Check:
    count = len(case.structure.orders.edges)
    return Check(count > 0, f"{count:,} relations between tokens")


CHOICE = Assumption(
    "a choice",
    "Some context has tokens that do not explain its label.",
    _choice,
    lambda: of_words("a b", "b c", "c a"),
)


def _complete(case: CorpusCase) -> Check:
    orders = case.structure.orders
    best, worse, stated = (
        np.bincount(pairs[:, 0], minlength=orders.size)
        for pairs in (orders.optimal, orders.non_optimal, orders.edges)
    )
    missing = best * worse - stated
    return Check(
        not missing.any(),
        f"{int(missing.sum()):,} relations of optimal to non-optimal tokens are missing",
    )


COMPLETE_ORDERS = Assumption(
    "complete orders",
    "Under every query each optimal token comes before each non-optimal one.",
    _complete,
    missing_relations,
)


def _orthonormal(case: CorpusCase) -> Check:
    error = orthonormality_error(case.table)
    return Check(are_orthonormal(case.table), f"off by {error:.2g}")


ORTHONORMAL = Assumption(
    "orthonormal embeddings",
    "The embeddings of the vocabulary are orthonormal.",
    _orthonormal,
    with_gaussian_embeddings,
)


def _orthogonal(case: CorpusCase) -> Check:
    length = float(np.linalg.norm(case.table, axis=-1).max())
    error = orthonormality_error(case.table / length)
    found = f"of length {length:.3g}, off by {error:.2g} of its square"
    return Check(are_orthonormal(case.table / length), found)


ORTHOGONAL = Assumption(
    "orthogonal embeddings",
    "The embeddings of the vocabulary are orthogonal, and of one length.",
    _orthogonal,
    with_gaussian_embeddings,
)


def _zero_start(case: CorpusCase) -> Check:
    first, second = case.initial_scales
    return Check(
        not (first or second),
        f"entries start with standard deviations {first:g} and {second:g}",
    )


ZERO_START = Assumption(
    "zero start",
    "Both layers start at zero.",
    _zero_start,
    lambda: grammar().replace(initial_scales=(0.06, 0.06)),
)

CORPUS_HYPOTHESES = (CHOICE, COMPLETE_ORDERS, ORTHONORMAL)
"""The hypotheses reported of a user's corpus, beside those of its structure."""
