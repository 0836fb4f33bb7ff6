"""Query-dependent partial orders of tokens, and the four classes of tokens they make."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures._collocation import Collocation
from attractor.corpora.structures.graphs import QueryGraphs
from attractor.corpora.structures.relations import relations
from attractor.support.checks import check_count, check_kinds


class TokenClass(enum.Enum):
    """The class of a token under a query. Every token has exactly one."""

    OPTIMAL = "optimal"
    """Comes before some token and after none."""
    CONFUSED = "confused"
    """Comes before some token and after some."""
    NON_OPTIMAL = "non-optimal"
    """Comes after some token and before none."""
    NON_COMPARABLE = "non-comparable"
    """No relation names it."""


@dataclass(frozen=True, eq=False, repr=False)
class PartialOrders(QueryGraphs):
    """For each query, which tokens come before which: ``x >_q x'``.

    A context with query q whose label is ``n(x)`` puts x before all its other tokens. Source:
    *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335), query-dependent partial orders.

    A token is *optimal* if it comes before some and after none, *confused* if it comes before some
    and after some, *non-optimal* if it comes after some and before none, and *non-comparable* if
    no relation names it.
    """

    @cached_property
    def wins(self) -> Bool[np.ndarray, "nodes"]:
        """Whether a node comes before another."""
        return np.bincount(self.sources, minlength=len(self.nodes)) > 0

    @cached_property
    def loses(self) -> Bool[np.ndarray, "nodes"]:
        """Whether a node comes after another."""
        return np.bincount(self.targets, minlength=len(self.nodes)) > 0

    @property
    def optimal(self) -> Int[np.ndarray, "n 2"]:
        """``(query, token)`` of every optimal token."""
        return self.nodes[self.wins & ~self.loses]

    @property
    def confused(self) -> Int[np.ndarray, "n 2"]:
        """``(query, token)`` of every confused token."""
        return self.nodes[self.wins & self.loses]

    @property
    def non_optimal(self) -> Int[np.ndarray, "n 2"]:
        """``(query, token)`` of every non-optimal token."""
        return self.nodes[~self.wins & self.loses]

    def classes(self, query: int) -> dict[TokenClass, tuple[int, ...]]:
        """The tokens of each class under a query."""
        query = check_count("query", query, 0, self.size - 1)
        own = self.nodes[:, 0] == query
        found = {}
        for kind, chosen in (
            (TokenClass.OPTIMAL, self.wins & ~self.loses),
            (TokenClass.CONFUSED, self.wins & self.loses),
            (TokenClass.NON_OPTIMAL, ~self.wins & self.loses),
        ):
            found[kind] = tuple(self.nodes[own & chosen, 1].tolist())
        rest = np.setdiff1d(np.arange(self.size), self.nodes[own, 1])
        return found | {TokenClass.NON_COMPARABLE: tuple(rest.tolist())}

    def class_table(self) -> np.ndarray:
        """The class of every token under every query, ``(query, token)`` of ``TokenClass`` values.

        It has a square of the vocabulary's size; meant for vocabularies that can be drawn.
        """
        table = np.full((self.size, self.size), TokenClass.NON_COMPARABLE.value, dtype="<U14")
        for kind, pairs in (
            (TokenClass.OPTIMAL, self.optimal),
            (TokenClass.CONFUSED, self.confused),
            (TokenClass.NON_OPTIMAL, self.non_optimal),
        ):
            table[tuple(pairs.T)] = kind.value
        return table


def partial_orders(corpus: Corpus, collocation: Collocation) -> PartialOrders:
    """The partial orders that the samples of a corpus state.

    Samples whose label no token explains, or whose context lacks the token that does, state
    nothing.
    """
    check_kinds(corpus=(corpus, Corpus), collocation=(collocation, Collocation))
    return PartialOrders(relations(corpus, collocation.explaining(corpus)), corpus.vocabulary)


def token_priority_graphs(corpus: Corpus) -> QueryGraphs:
    """The token-priority graphs of a corpus: under each query, edges from labels to other tokens.

    Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081).
    """
    check_kinds(corpus=(corpus, Corpus))
    return QueryGraphs(relations(corpus, corpus.labels), corpus.vocabulary)
