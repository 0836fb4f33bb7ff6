"""The assumptions of next-token theory on a corpus, checked sample by sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.parts.fingerprints import Fingerprints
from attractor.corpora.structures._collocation import Collocation
from attractor.corpora.structures.occurrences import (
    Occurrences,
    Prefixes,
    among,
    contexts_in_portions,
    longest_prefixes,
)
from attractor.corpora.structures.orders import PartialOrders

_NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class AssumptionCheck:
    """Whether a corpus meets an assumption, and which samples break it.

    Attributes:
        name: A few words.
        statement: The assumption, in a sentence.
        found: The finding, in words and numbers.
        met: Whether it is met.
        offending: The samples that break it.
        share: Their share of the corpus, by weight.
        examples: Some of them in words.
    """

    name: str
    statement: str
    found: str
    met: bool
    offending: Int[np.ndarray, "n"]
    share: float
    examples: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{self.name}: {'met' if self.met else 'not met'} ({self.found})"


def check_assumptions(
    corpus: Corpus, collocation: Collocation, orders: PartialOrders
) -> tuple[AssumptionCheck, ...]:
    """Decides every assumption on a corpus; those of realizability come first.

    Source: *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335): realizable data sets, and the number of occurrences of the optimal token.
    """
    explaining = collocation.explaining(corpus)

    def check(
        name: str,
        statement: str,
        breaks: Bool[np.ndarray, "samples"],
        met: bool,
        if_met: str,
        if_not: str,
    ) -> AssumptionCheck:
        found = if_met if met else if_not
        offending = np.flatnonzero(breaks)
        share = float(corpus.weights[offending].sum() / corpus.weights.sum())
        examples = tuple(corpus.words(sample) for sample in offending[:_NAMED].tolist())
        return AssumptionCheck(name, statement, found, met, offending, share, examples)

    names = corpus.vocabulary
    unexplained = collocation.inverse[corpus.labels] < 0
    lost = (explaining < 0) & ~unexplained
    cyclic = _with_relation(corpus, orders, explaining, orders.cyclic)
    confused = _with_confused(corpus, orders, explaining)
    repeated = _other_more_frequent(corpus, explaining)
    missing = np.intersect1d(collocation.missing, _in_contexts(corpus))
    unclosed = _prefix_missing(corpus)
    return (
        check(
            COLLOCATION,
            "Every token of a context stands alone in some context, always with the same label.",
            with_unknown(corpus, collocation),
            not len(missing) and not len(collocation.conflicts),
            "every token of a context has a collocation",
            "; ".join(
                [
                    *_counted(missing, names, "never stand alone"),
                    *_counted(collocation.conflicts, names, "stand alone with several labels"),
                ]
            ),
        ),
        check(
            INJECTIVE,
            "No two tokens are followed by the same one, so that a label tells which token it is "
            "explained by.",
            np.isin(corpus.labels, collocation.shared),
            collocation.injective,
            "no label is shared",
            "; ".join(_counted(collocation.shared, names, "follow more than one token")),
        ),
        check(
            EXPLAINED,
            "Every context holds the token that explains its label.",
            lost | unexplained,
            not (lost | unexplained).any(),
            "every label is explained",
            f"of {int((lost | unexplained).sum()):,} contexts {int(lost.sum()):,} lack the "
            f"token that explains their label, and {int(unexplained.sum()):,} have a label that "
            "no token explains",
        ),
        check(
            ORDERED,
            "The order under every query is free of cycles.",
            cyclic,
            orders.acyclic,
            "no cycles",
            f"{int(orders.cyclic.sum()):,} relations lie on cycles, under "
            f"{len(np.unique(orders.edges[orders.cyclic, 0])):,} queries",
        ),
        check(
            UNCONFUSED,
            "No token comes before one and after another under the same query.",
            confused,
            not len(orders.confused),
            "no token is confused",
            f"{len(orders.confused):,} tokens are confused, under "
            f"{len(np.unique(orders.confused[:, 0])):,} queries",
        ),
        check(
            REPETITION,
            "In every context the optimal token occurs at least as often as any other.",
            repeated,
            not repeated.any(),
            "the optimal token is nowhere outnumbered",
            f"it is outnumbered in {int(repeated.sum()):,} contexts",
        ),
        check(
            CLOSED,
            "Every prefix of a context is the context of a sample.",
            unclosed,
            not unclosed.any(),
            "closed under taking prefixes",
            f"{int(unclosed.sum()):,} contexts have prefixes that are no samples",
        ),
    )


COLLOCATION = "collocation"
INJECTIVE = "injective collocation"
EXPLAINED = "labels explained"
ORDERED = "well-defined orders"
UNCONFUSED = "no confused tokens"
REPETITION = "optimal token as frequent as any"
CLOSED = "closed under prefixes"
REALIZABILITY = (COLLOCATION, INJECTIVE, EXPLAINED, ORDERED, UNCONFUSED)
"""The assumptions that make up a realizable data set."""


def _counted(tokens: np.ndarray, names: tuple[str, ...], what: str) -> list[str]:
    """The number of tokens concerned, and some of them; an empty list if there are none."""
    if not len(tokens):
        return []
    some = ", ".join(repr(names[token]) for token in tokens[:_NAMED])
    more = ", ..." if len(tokens) > _NAMED else ""
    return [f"{len(tokens):,} of {len(names):,} tokens {what} ({some}{more})"]


def _in_contexts(corpus: Corpus) -> Int[np.ndarray, "n"]:
    """Tokens of some context; those that are only ever labels are in none."""
    if corpus.every_prefix:
        return np.unique(corpus.tokens[corpus.positions])
    edges = np.zeros(len(corpus.tokens) + 1, dtype=np.int64)
    np.add.at(edges, corpus.first, 1)
    np.add.at(edges, corpus.positions + 1, -1)
    return np.unique(corpus.tokens[np.cumsum(edges[:-1]) > 0])


def with_unknown(corpus: Corpus, collocation: Collocation) -> Bool[np.ndarray, "samples"]:
    """Contexts with a token that has no collocation."""
    unknown = np.cumsum([0, *(collocation.next_token[corpus.tokens] < 0)])
    return unknown[corpus.positions + 1] > unknown[corpus.first]


def _with_relation(
    corpus: Corpus,
    orders: PartialOrders,
    explaining: Int[np.ndarray, "samples"],
    chosen: Bool[np.ndarray, "edges"],
) -> Bool[np.ndarray, "samples"]:
    """Contexts that state one of the relations chosen."""
    size = corpus.vocabulary_size
    edges = orders.edges[chosen]
    pairs = edges[:, 0] * size + edges[:, 1]
    return _any_token(corpus, explaining, corpus.queries * size + explaining, pairs, edges[:, 2])


def _with_confused(
    corpus: Corpus, orders: PartialOrders, explaining: Int[np.ndarray, "samples"]
) -> Bool[np.ndarray, "samples"]:
    """Contexts that hold a confused token of their query."""
    return _any_token(corpus, explaining, corpus.queries, *orders.confused.T)


def _any_token(
    corpus: Corpus,
    explaining: Int[np.ndarray, "samples"],
    kind: Int[np.ndarray, "samples"],
    kinds: Int[np.ndarray, "n"],
    tokens: Int[np.ndarray, "n"],
) -> Bool[np.ndarray, "samples"]:
    """Explained contexts that hold a token which is in the way of contexts of their kind.

    The pairs of kinds and tokens are in increasing order.
    """
    breaks = np.zeros(len(corpus.positions), dtype=bool)
    size = corpus.vocabulary_size
    keys = kinds * size + tokens
    suspects = np.flatnonzero((explaining >= 0) & among(kind, kinds))
    if corpus.context_length is not None:
        for sample, place in contexts_in_portions(corpus, suspects):
            found = among(kind[sample] * size + corpus.tokens[place], keys)
            breaks[sample[found]] = True
        return breaks
    longest, group = longest_prefixes(corpus, suspects, kind[suspects])
    ends, kind = corpus.positions[suspects[longest]], kind[suspects[longest]]
    earliest = np.full(len(ends), len(corpus.tokens))
    for number, place in Prefixes(corpus).in_portions(ends):
        found = among(kind[number] * size + corpus.tokens[place], keys)
        np.minimum.at(earliest, number[found], place[found])
    breaks[suspects] = corpus.positions[suspects] >= earliest[group]
    return breaks


def _other_more_frequent(
    corpus: Corpus, explaining: Int[np.ndarray, "samples"]
) -> Bool[np.ndarray, "samples"]:
    """Contexts in which some token occurs more often than the one that explains the label."""
    places = Occurrences(corpus)
    own = places.count(explaining, corpus.first, corpus.positions)
    return (own < places.most_frequent()) & (explaining >= 0)


def _prefix_missing(corpus: Corpus) -> Bool[np.ndarray, "samples"]:
    """Contexts with a prefix that is not the context of any sample."""
    if corpus.every_prefix and corpus.context_length is None:
        return np.zeros(len(corpus.positions), dtype=bool)
    return Fingerprints(corpus).with_prefix_missing()
