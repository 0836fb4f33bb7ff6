"""``corpus_structure``: what next-token theory predicts of a corpus, and whether it applies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Int
from rich.console import Console
from rich.text import Text

from attractor.corpora.corpus import Corpus
from attractor.corpora.samples import Fingerprints
from attractor.corpora.structures.occurrences import (
    Collocation,
    Occurrences,
    Prefixes,
    among,
    collocation,
    contexts_in_portions,
    longest_prefixes,
)
from attractor.corpora.structures.orders import (
    PartialOrders,
    QueryGraphs,
    TokenClass,
    partial_orders,
    token_priority_graphs,
)
from attractor.results import Plotted, Printed, plain_table
from attractor.support.checks import check_choice, check_count, check_kinds

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


@dataclass(frozen=True, eq=False, repr=False)
class CorpusStructure(Plotted, Printed):
    """The structure of a corpus: its collocation and its partial orders.

    Attributes:
        corpus: The corpus.
        collocation: The token that follows each one-token context.
        orders: The query-dependent partial orders.
        assumptions: The assumptions of the theory, checked on the corpus.
    """

    _plots = "attractor.corpora.plots"

    width: ClassVar[int] = 100
    corpus: Corpus
    collocation: Collocation
    orders: PartialOrders
    assumptions: tuple[AssumptionCheck, ...]

    @property
    def realizable(self) -> bool:
        """Whether collocation and orders exist, without confused tokens."""
        return all(check.met for check in self.assumptions if check.name in REALIZABILITY)

    def assumption(self, name: str) -> AssumptionCheck:
        """The check of one assumption."""
        check_choice("name", name, [check.name for check in self.assumptions])
        return next(check for check in self.assumptions if check.name == name)

    @cached_property
    def priorities(self) -> QueryGraphs:
        """The token-priority graphs, which need no collocation."""
        return token_priority_graphs(self.corpus)

    def _picture(self) -> tuple[str, tuple[AssumptionCheck, ...]]:
        return "assumptions_figure", self.assumptions

    def _print(self, console: Console) -> None:
        corpus, orders = self.corpus, self.orders
        console.print(
            f"{corpus.sentences:,} sentences, {len(corpus.positions):,} samples, "
            f"{corpus.context_tokens:,} tokens in contexts, vocabulary of "
            f"{corpus.vocabulary_size:,}",
            highlight=False,
        )
        console.print(
            f"{len(orders.edges):,} relations under {len(np.unique(orders.edges[:, 0])):,} queries",
            highlight=False,
        )
        table = plain_table()
        table.add_column("assumption", no_wrap=True)
        table.add_column("met", no_wrap=True)
        table.add_column("samples\nin its way", justify="right", no_wrap=True)
        table.add_column("found")
        for check in self.assumptions:
            met = Text("yes", "green") if check.met else Text("no", "bold red")
            count = f"{len(check.offending):,} ({check.share:.1%})" if check.share else "-"
            table.add_row(check.name, met, count, check.found)
        console.print(table)
        verdict = "realizable" if self.realizable else "not realizable"
        console.print(f"The corpus is {verdict}.", highlight=False)

    def summary(self, most: int = 1000) -> dict[str, Any]:
        """The structure as plain values of JSON.

        Args:
            most: Number of queries to list orders of; more are counted, not listed.
        """
        most = check_count("most", most, 0)
        names = self.corpus.vocabulary
        queries = np.unique(self.orders.edges[:, 0])
        return {
            "sentences": self.corpus.sentences,
            "samples": len(self.corpus.positions),
            "context_tokens": self.corpus.context_tokens,
            "vocabulary": self.corpus.vocabulary_size,
            "collocation": self.collocation.words(),
            "orders": {
                names[query]: [
                    [names[before], names[after]] for before, after in self.orders.of(query)
                ]
                for query in queries[:most].tolist()
            },
            "classes": {names[query]: self._classes(query) for query in queries[:most].tolist()},
            "queries": len(queries),
            "relations": len(self.orders.edges),
            "realizable": self.realizable,
            "assumptions": {
                check.name: {
                    "met": check.met,
                    "found": check.found,
                    "samples": len(check.offending),
                    "share": check.share,
                    "examples": list(check.examples),
                }
                for check in self.assumptions
            },
        }

    def _classes(self, query: int) -> dict[str, list[str]]:
        names = self.corpus.vocabulary
        return {
            kind.value: [names[token] for token in tokens]
            for kind, tokens in self.orders.classes(query).items()
            if kind is not TokenClass.NON_COMPARABLE  # the rest of the vocabulary
        }


def corpus_structure(corpus: Corpus) -> CorpusStructure:
    """Finds collocation, orders and token classes of a corpus, and checks the assumptions.

    The work is linear in the number of tokens, but for one sort and for distinct relations.
    Source: *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335).

    Example:
        >>> import attractor as at
        >>> corpus = at.corpora.Corpus.from_sentences([["a", "b", "c"], ["b", "c", "a"]])
        >>> structure = at.corpora.corpus_structure(corpus)
        >>> structure.realizable
        False
        >>> [one.name for one in structure.assumptions if not one.met]
        ['collocation', 'labels explained']
    """
    check_kinds(corpus=(corpus, Corpus))
    found = collocation(corpus)
    orders = partial_orders(corpus, found)
    return CorpusStructure(corpus, found, orders, check_assumptions(corpus, found, orders))
