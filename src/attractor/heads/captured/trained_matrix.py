"""The matrix of a head that training moves, in coordinates whose norms are those of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.heads.captured.captured import CapturedLayer, Projections
from attractor.tokens import Tokens

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
