"""``corpus_structure``: what next-token theory predicts of a corpus before training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from rich.console import Console
from rich.text import Text

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures._collocation import Collocation, collocation
from attractor.corpora.structures.assumptions import (
    REALIZABILITY,
    AssumptionCheck,
    check_assumptions,
)
from attractor.corpora.structures.graphs import QueryGraphs
from attractor.corpora.structures.orders import (
    PartialOrders,
    TokenClass,
    partial_orders,
    token_priority_graphs,
)
from attractor.results import Plotted, Printed, plain_table
from attractor.support.checks import check_choice, check_count, check_kinds


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
