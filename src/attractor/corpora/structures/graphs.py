"""Directed graphs on tokens, one for each query, and their strongly connected components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from attractor.corpora.structures.occurrences import distinct
from attractor.support.checks import check_count
from attractor.support.precision import as_integers, check_broadcast


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
