"""Token scores in place of labels and head."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, finite_where
from attractor.tokens import Tokens


def tokens_from_scores(rows: Tokens, scores: Any) -> Tokens:
    """Tokens whose token scores are given: labels +1, and the scores as values.

    With the head ``LinearHead([1.0])`` the prediction for a row is then ``sum_t softmax(s)_t
    score_t``. Where each query has scores of its own, each becomes a sequence of its own, which
    leaves every loss as it is.

    Args:
        rows: Keys, queries and mask.
        scores: ``(*instances, n, T)``, or ``(*instances, n, K, T)`` with scores for each query;
            anything where the mask is False.

    Raises:
        InvalidInputError: If the shape is different, or the score of a token that may be attended
            to is not a finite number.
    """
    array = as_float64("scores", scores, finite=False)
    per_query = rows.mask.shape
    per_sequence = (*per_query[:-2], per_query[-1])
    if array.shape not in (per_sequence, per_query):
        raise InvalidInputError(
            "scores",
            f"the shape is {array.shape}",
            f"Give {per_sequence}"
            + (f", or {per_query} with scores for each query" if per_query[-2] > 1 else ""),
        )
    used = rows.mask if rows.weights is None else rows.mask & (rows.weights > 0)[..., None]
    attended = rows.mask
    if array.ndim < len(per_query):
        used, attended = used.any(-2), attended.any(-2)
    values = np.where(attended, finite_where("scores", array, used), 0.0)[..., None]
    if values.ndim == rows.keys.ndim:
        return _with_values(rows, values)
    *lead, n, K, T = per_query
    own_rows = Tokens(
        np.repeat(rows.keys, K, axis=-3),
        rows.queries.reshape(*lead, n * K, 1, -1),
        mask=rows.mask.reshape(*lead, n * K, 1, T),
        weights=None if rows.weights is None else rows.weights.reshape(*lead, n * K),
        instance_numbers=rows.instance_numbers,
    )
    return _with_values(own_rows, values.reshape(*lead, n * K, T, 1))


def scores_of(
    tokens: Tokens, head_weight: Float[np.ndarray, "*instances v"] | None
) -> Float[np.ndarray, "..."] | None:
    """The scores that tokens were made from, or None if they are of another kind."""
    if head_weight is None or head_weight.ndim > 1 or tokens.values is tokens.keys:
        return None
    plain = tokens.value_dimension == 1 and float(head_weight[0]) == 1
    if not plain or tokens.labels is None or (tokens.labels != 1).any():
        return None
    scores = tokens.values[..., 0]
    return scores if (scores[~tokens.mask.any(-2)] == 0).all() else None


def _with_values(rows: Tokens, values: Float[np.ndarray, "*instances n T 1"]) -> Tokens:
    return Tokens(
        rows.keys,
        rows.queries,
        np.ones(rows.mask.shape[:-1]),
        rows.mask,
        values,
        weights=rows.weights,
        instance_numbers=rows.instance_numbers,
    )
