"""One head of those captured: which is meant, what it meets, and the matrix that training moves."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.heads.captured.captured import Captured, CapturedLayer, Projections
from attractor.support.checks import check_count, check_items, is_whole, shown
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

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


def chosen_heads(
    captured: Captured, layers: Sequence[int] | None, heads: Sequence[tuple[int, int]] | None
) -> set[tuple[int, int | None]]:
    """Pairs of a layer and a head, None for all of a layer.

    Args:
        captured: What was captured.
        layers: Numbers of layers; None for all.
        heads: In place of layers, pairs of a layer and a head.

    Raises:
        InvalidInputError: If both are given, something is no number or pair, or a layer was not
            captured.
    """
    if layers is not None and heads is not None:
        raise InvalidInputError("heads", "they stand beside layers", "Give one of the two")
    if heads is None:
        numbers = captured.layers if layers is None else check_items("layers", layers, object, 1)
        found: set[tuple[int, int | None]] = {
            (check_count("layers", one, 0), None) for one in numbers
        }
    else:
        found = set(pairs_of(heads))
    for layer, _ in found:
        if layer not in captured.layers:
            raise InvalidInputError(
                "layers" if heads is None else "heads",
                f"layer {layer} was not captured",
                f"Choose among {captured.layers}",
            )
    return found


def pairs_of(heads: Any) -> list[tuple[int, int]]:
    """Pairs of a layer and a head.

    Raises:
        InvalidInputError: If something is no pair.
    """
    return [_pair(one) for one in check_items("heads", heads, object, 1)]


def heads_of(number: int, layer: CapturedLayer, chosen: set[tuple[int, int | None]]) -> list[int]:
    """The heads chosen of a layer.

    Raises:
        InvalidInputError: If one does not exist.
    """
    if (number, None) in chosen:
        return list(range(layer.heads))
    heads = sorted(head for at, head in chosen if at == number and head is not None)
    for head in heads:
        if not 0 <= head < layer.heads:
            raise InvalidInputError(
                "heads",
                f"layer {number} has no head {head}",
                f"Give heads from 0 to {layer.heads - 1}",
            )
    return heads


def _pair(value: Any) -> tuple[int, int]:
    """A layer and a head."""
    found = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(found, tuple | list) or len(found) != 2 or not all(map(is_whole, found)):
        raise InvalidInputError(
            "heads",
            f"{shown(value)} is no pair of a layer and a head",
            "Give pairs such as (2, 8)",
        )
    return int(found[0]), int(found[1])


_ROUNDING = 100
"""Singular values of weights below so many units of rounding of the largest are not there."""


def trained_matrix(layer: CapturedLayer, head: int) -> tuple[Tokens, Float[np.ndarray, "d e"]]:
    """What a head sees and its matrix ``W``, of scores ``x^T W z``; as ``trained_factors`` has it.

    Args:
        layer: The layer.
        head: The number of the head.

    Raises:
        InvalidInputError: If there is no such head.
    """
    tokens, left, right = trained_factors(layer, head)
    return tokens, left.T @ right


def trained_factors(
    layer: CapturedLayer, head: int
) -> tuple[Tokens, Float[np.ndarray, "width d"], Float[np.ndarray, "width e"]]:
    r"""What a head sees, and the factors ``A`` and ``B`` of its matrix: scores are ``x^T A^T B z``.

    With ``q = Q z + b`` and ``k = K x`` the scores of a head are ``x^T K^T [Q, b] (z, 1)``, and
    optimizers favor matrices that are small in norms of ``K^T [Q, b]``. With orthonormal
    coordinates of the rows of ``K`` and of ``Q`` its singular values are those of a matrix no
    larger than the head is wide. A head at a margin solution among all matrices is at that among
    matrices of its own rows, which are compared here.

    Where keys are no linear function of what the layer reads, their coordinates are those of the
    keys themselves; where projections are not known, so are those of queries, and ``A`` and ``B``
    are the identity.

    Args:
        layer: The layer.
        head: The number of the head.

    Returns:
        Keys ``x``, a query ``z`` for each sequence, with a last entry of one where there is a bias,
        and the tokens that the model's mask allows; ``A`` and ``B``, by which ``A x`` is the key
        up to a constant and ``B z`` is the query.

    Raises:
        InvalidInputError: If there is no such head.
    """
    shared = layer.key_head(head)
    keys, queries, left, right = coordinates(
        layer.keys[:, shared], layer.queries[:, head], layer.projections, head, shared
    )
    tokens = Tokens(keys=keys, queries=queries[:, None], mask=layer.allowed[:, None])
    return tokens, left, right


def coordinates(
    keys: Float[np.ndarray, "*tokens width"],
    queries: Float[np.ndarray, "*rows width"],
    made: Projections | None,
    head: int,
    shared: int,
) -> tuple[
    Float[np.ndarray, "*tokens d"],
    Float[np.ndarray, "*rows e"],
    Float[np.ndarray, "width d"],
    Float[np.ndarray, "width e"],
]:
    """Keys and queries of a head in the coordinates of ``trained_factors``, and ``A`` and ``B``.

    Args:
        keys: Keys, up to a constant.
        queries: Queries, any scale of the scores included.
        made: The matrices that made them, None where they are not known.
        head: The number of the head.
        shared: The number of its key head.
    """
    keys, queries = keys.astype(np.float64), queries.astype(np.float64)
    left = right = np.eye(queries.shape[-1])
    if made is not None and made.key is not None:
        inverse, left = _of_rows(made.key[shared])
        keys = keys @ inverse.T
    if made is not None:
        bias = np.zeros(queries.shape[-1]) if made.bias is None else made.bias[head].astype(float)
        inverse, right = _of_rows(made.query[head])
        queries = (queries - bias) @ inverse.T
        if made.bias is not None:
            queries = np.concatenate([queries, np.ones((*queries.shape[:-1], 1))], -1)
            right = np.concatenate([right, bias[:, None]], -1)
    return keys, queries, left, right


def _of_rows(weights: Any) -> tuple[Float[np.ndarray, "rank width"], Float[np.ndarray, "width r"]]:
    """Maps of ``M x`` to coordinates of ``x`` in orthonormal rows of ``M``, and back."""
    left, singular, _ = np.linalg.svd(weights.astype(np.float64), full_matrices=False)
    kept = singular > _ROUNDING * np.finfo(weights.dtype).eps * singular.max(initial=0.0)
    basis = left[:, kept] * singular[kept]
    return (left[:, kept] / singular[kept]).T, basis
