"""Query-dependent orders of tokens: relations of samples, their graphs, and classes of tokens."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures.occurrences import (
    Collocation,
    Prefixes,
    contexts_in_portions,
    distinct,
    longest_prefixes,
)
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_integers, check_broadcast

_MOST = 5 * 10**7
"""Distinct relations that are kept: more than a person, or a solver, can use."""


def relations(
    corpus: Corpus, preferred: Int[np.ndarray, "samples"]
) -> Int[np.ndarray, "relations 3"]:
    """Every relation ``(query, preferred, other)`` that a sample states, once.

    A sample puts its preferred token before every other token of its context.

    Args:
        corpus: The corpus.
        preferred: The preferred token of each sample; -1 where the sample states nothing.

    Returns:
        The relations in increasing order.

    Raises:
        InvalidInputError: If there are more than can be used.
    """
    if corpus.context_length is None:
        found = _of_prefixes(corpus, preferred)
    else:
        found = _of_windows(corpus, preferred)
    size = corpus.vocabulary_size
    rest, other = np.divmod(found, size)
    query, before = np.divmod(rest, size)
    return np.stack([query, before, other], axis=1)


def _of_prefixes(corpus: Corpus, preferred: Int[np.ndarray, "samples"]) -> Int[np.ndarray, "n"]:
    """Keys of the relations, where contexts are whole prefixes.

    Prefixes of one sentence with the same query and preferred token grow, so that the longest
    suffices; and its distinct tokens are the first few of those of the sentence.
    """
    size = corpus.vocabulary_size
    samples = np.flatnonzero(preferred >= 0)
    pair = corpus.queries[samples] * size + preferred[samples]
    longest, _ = longest_prefixes(corpus, samples, pair)
    ends, pair = corpus.positions[samples[longest]], pair[longest]
    prefixes = Prefixes(corpus)
    stated = prefixes.counts(ends) - 1  # less the preferred token, where it is in the context
    # What one sentence states is all different.
    alone = np.bincount(corpus.sentence_of[ends], stated)
    _check_count(int(alone.max(initial=0)))
    merged = _Merged()
    for number, place in prefixes.in_portions(ends):
        merged.add(pair[number], corpus.tokens[place], size)
    return merged.result()


def _of_windows(corpus: Corpus, preferred: Int[np.ndarray, "samples"]) -> Int[np.ndarray, "n"]:
    """Keys of the relations, where contexts are the last few tokens."""
    size = corpus.vocabulary_size
    pair = corpus.queries * size + preferred
    merged = _Merged()
    for sample, place in contexts_in_portions(corpus, np.flatnonzero(preferred >= 0)):
        merged.add(pair[sample], corpus.tokens[place], size)
    return merged.result()


class _Merged:
    """Distinct keys of portion after portion."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._size = self._merged = 0

    def add(self, pair: np.ndarray, other: np.ndarray, size: int) -> None:
        """Adds relations, less those of a token to itself."""
        keys = distinct((pair * size + other)[pair % size != other])
        self._parts.append(keys)
        self._size += len(keys)
        if self._size > 2 * max(self._merged, 2**22):
            self.result()

    def result(self) -> Int[np.ndarray, "n"]:
        """All distinct keys so far, in increasing order."""
        joined = np.concatenate([np.zeros(0, dtype=np.int64), *self._parts])
        merged = joined if len(self._parts) == 1 else distinct(joined)
        _check_count(len(merged))
        self._parts, self._size, self._merged = [merged], len(merged), len(merged)
        return merged


def _check_count(count: int) -> None:
    if count > _MOST:
        raise InvalidInputError(
            "corpus",
            f"it states more than {_MOST:,} relations between tokens",
            "Give a smaller vocabulary, or a context_length",
        )


@dataclass(frozen=True, eq=False, repr=False)
class QueryGraphs:
    """A directed graph for each query, with edges from tokens that are preferred to others.

    The graphs of all queries lie side by side in one list of edges, and a node is a token under a
    query. Tokens without an edge are no nodes.

    Attributes:
        edges: ``(query, preferred, other)``, every edge once, in increasing order.
        vocabulary: The name of every token number.
    """

    edges: Int[np.ndarray, "edges 3"]
    vocabulary: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of tokens in the vocabulary."""
        return len(self.vocabulary)

    @cached_property
    def nodes(self) -> Int[np.ndarray, "nodes 2"]:
        """``(query, token)`` of every node, in increasing order."""
        return np.stack(np.divmod(self._node_keys, self.size), axis=1)

    @cached_property
    def sources(self) -> Int[np.ndarray, "edges"]:
        """The node that each edge leaves."""
        return np.searchsorted(self._node_keys, self.edges[:, 0] * self.size + self.edges[:, 1])

    @cached_property
    def targets(self) -> Int[np.ndarray, "edges"]:
        """The node that each edge enters."""
        return np.searchsorted(self._node_keys, self.edges[:, 0] * self.size + self.edges[:, 2])

    @cached_property
    def components(self) -> Int[np.ndarray, "nodes"]:
        """The strongly connected component of each node: both can be reached from each other."""
        count = len(self.nodes)
        ones = np.ones(len(self.edges), dtype=np.int8)
        graph = coo_array((ones, (self.sources, self.targets)), shape=(count, count))
        if not count:
            return np.zeros(0, dtype=np.int64)
        return connected_components(graph.tocsr(), connection="strong")[1].astype(np.int64)

    @cached_property
    def cyclic(self) -> Bool[np.ndarray, "edges"]:
        """Whether an edge lies on a cycle: both of its ends in one component."""
        return self.components[self.sources] == self.components[self.targets]

    @property
    def acyclic(self) -> bool:
        """Whether no query has a cycle."""
        return not self.cyclic.any()

    def component_of(
        self, query: Int[np.ndarray, "n"], token: Int[np.ndarray, "n"]
    ) -> Int[np.ndarray, "n"]:
        """The component of tokens under queries; -1 for those that are no nodes."""
        query = as_integers("query", query, ("...",))
        token = as_integers("token", token, ("...",))
        check_broadcast("token", token.shape, query.shape)
        if not len(self._node_keys):
            return np.full(np.shape(query), -1)
        keys = query * self.size + token
        place = np.minimum(np.searchsorted(self._node_keys, keys), len(self._node_keys) - 1)
        return np.where(self._node_keys[place] == keys, self.components[place], -1)

    def component_sizes(self) -> Int[np.ndarray, "components"]:
        """Number of tokens in each component."""
        return np.bincount(self.components)

    def of(self, query: int) -> Int[np.ndarray, "edges 2"]:
        """The edges ``(preferred, other)`` of one query."""
        query = check_count("query", query, 0, self.size - 1)
        first, last = np.searchsorted(self.edges[:, 0], [query, query + 1])
        return self.edges[first:last, 1:]

    @cached_property
    def _node_keys(self) -> Int[np.ndarray, "nodes"]:
        query = self.edges[:, :1] * self.size
        return distinct((query + self.edges[:, 1:]).ravel())

    def __repr__(self) -> str:
        queries = len(np.unique(self.edges[:, 0]))
        cycles = int(self.cyclic.sum())
        return f"{type(self).__name__}({queries} queries, {len(self.edges)} edges, {cycles} cyclic)"


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
