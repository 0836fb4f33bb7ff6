"""What one head meets under every query, and on which documents rules are learned and tested."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.heads.captured.captured import Captured, CapturedLayer

LEAST_CANDIDATES = 4
"""Content tokens from which a query is used: choosing among fewer says little."""
BY_MASK = "by mask"
"""The number of sinks at the beginning of texts: 1 where attention is causal, 0 else."""
LEAST_DOCUMENTS = 50
"""Documents to learn from, and to test on, below which nothing is said of a pairing."""


@dataclasses.dataclass(frozen=True, eq=False)
class HeadRows:
    """One head under the queries that have content to choose among.

    Attributes:
        keys: Keys less the mean of content on training documents, ``(rows, tokens, width)``: a
            constant added to all keys adds the same to all scores of a query. Zero off content.
        queries: Queries less their mean on training documents, ``(rows, width)``.
        mean_query: That mean: ``keys @ mean_query`` is the part of scores without the query.
        content: Tokens to choose among, ``(rows, tokens)``.
        document: The document of each row.
        position: The place of each query among its tokens.
        row: The number of each row among all queries captured.
        learned: Rows of documents to learn rules from; the others are tested on.
    """

    keys: Float[np.ndarray, "rows tokens width"]
    queries: Float[np.ndarray, "rows width"]
    mean_query: Float[np.ndarray, "width"]
    content: Bool[np.ndarray, "rows tokens"]
    document: Int[np.ndarray, "rows"]
    position: Int[np.ndarray, "rows"]
    row: Int[np.ndarray, "rows"]
    learned: Bool[np.ndarray, "rows"]

    @property
    def enough(self) -> bool:
        """Whether there are documents enough to learn and to test."""
        return all(
            len(np.unique(self.document[part])) >= LEAST_DOCUMENTS
            for part in (self.learned, ~self.learned)
        )

    @cached_property
    def key_covariance(self) -> Float[np.ndarray, "width width"]:
        """Covariance of content keys on training documents."""
        keys = self.keys[self.learned][self.content[self.learned]]
        return keys.T @ keys / max(len(keys), 1)

    @cached_property
    def query_covariance(self) -> Float[np.ndarray, "width width"]:
        """Covariance of queries on training documents."""
        queries = self.queries[self.learned]
        return queries.T @ queries / max(len(queries), 1)

    @property
    def horizon(self) -> float:
        """Root of the mean squared score of independent keys and queries, both centered."""
        return float(np.sqrt(np.sum(self.key_covariance * self.query_covariance)))


def sink_count(captured: Captured, layer: CapturedLayer, setting: int | str) -> int:
    """How many of the first tokens are never content, as an audit was told.

    Args:
        captured: What was captured.
        layer: A layer of it.
        setting: The number, or ``BY_MASK``.
    """
    if setting != BY_MASK:
        return int(setting)
    later = np.arange(layer.allowed.shape[1]) > captured.position[:, None]
    return int(not (layer.allowed & later).any())


def content_tokens(
    captured: Captured, layer: CapturedLayer, sink_positions: int
) -> Bool[np.ndarray, "queries tokens"]:
    """Tokens that are content under each query's own mask: no special ones, none of the first.

    Args:
        captured: What was captured.
        layer: A layer of it.
        sink_positions: How many of the first places are never content.
    """
    late = np.arange(layer.allowed.shape[1]) >= sink_positions
    return layer.allowed & ~captured.special & late


def head_rows(
    captured: Captured,
    layer: CapturedLayer,
    head: int,
    content: Bool[np.ndarray, "queries tokens"],
    seed: int,
) -> HeadRows:
    """The rows of a head that have enough content."""
    used = np.flatnonzero(content.sum(-1) >= LEAST_CANDIDATES)
    inside = content[used]
    keys = layer.keys[used, layer.key_head(head)].astype(np.float64)
    queries = layer.queries[used, head].astype(np.float64)
    document = captured.document[used]
    learned = learned_documents(document, seed)
    chosen = keys[learned][inside[learned]]
    mean_query = queries[learned].mean(0) if learned.any() else np.zeros(queries.shape[1])
    mean_key = chosen.mean(0) if len(chosen) else np.zeros(queries.shape[1])
    return HeadRows(
        keys=np.where(inside[..., None], keys - mean_key, 0.0),
        queries=queries - mean_query,
        mean_query=mean_query,
        content=inside,
        document=document,
        position=captured.position[used],
        row=used,
        learned=learned,
    )


def learned_documents(document: Int[np.ndarray, "rows"], seed: int) -> Bool[np.ndarray, "rows"]:
    """Which rows to learn from: half of all documents, by a hash of the seed and their number.

    A document is on one side with all its queries, whatever other documents there are.
    """
    numbers, place = np.unique(document, return_inverse=True)
    hashes = [hashlib.sha256(f"{seed} {number}".encode()).digest()[0] for number in numbers]
    return (np.array(hashes, dtype=int) % 2 == 0)[place]
