"""Scores and selections of token files."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.margin.selection import Selection
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


def read_selection(chosen: np.ndarray | None, rows: Tokens, tokens: Tokens) -> Selection | None:
    """The selection that an array encodes.

    Args:
        chosen: The number of a token for each row; or truth values, where rows keep several.
        rows: The sequences with the queries that they have in the file.
        tokens: The same rows as they are used, perhaps with each query in a sequence of its own.

    Raises:
        InvalidInputError: If it does not fit the rows, or chooses what is masked.
    """
    if chosen is None:
        return None
    mask = _several(chosen, rows) if chosen.dtype == np.bool_ else _one_each(chosen, rows)
    mask = mask.reshape(tokens.mask.shape)
    return Selection(mask, np.zeros(mask.shape[:-1], dtype=bool))


def selection_array(
    selection: Selection, tokens: Tokens
) -> Int[np.ndarray, "..."] | Bool[np.ndarray, "..."]:
    """The array for a selection: numbers of tokens, or truth values where rows keep several.

    Raises:
        InvalidInputError: If the selection is of other tokens.
    """
    if selection.mask.shape != tokens.mask.shape:
        raise InvalidInputError(
            "selection",
            f"its mask has the shape {selection.mask.shape}",
            f"Give a selection of these tokens: {tokens.mask.shape}",
        )
    if (selection.mask.sum(-1) == 1).all():
        return selection.index
    return selection.mask[..., 0, :] if tokens.queries_per_sequence == 1 else selection.mask


def _one_each(chosen: np.ndarray, rows: Tokens) -> Bool[np.ndarray, "*instances n K T"]:
    shape = _without_single_query(rows.mask.shape[:-1], -1)
    if chosen.shape not in (shape, rows.mask.shape[:-1]):
        raise _misshapen(chosen, shape)
    return Selection.from_index(rows, chosen.reshape(shape)).mask


def _several(chosen: np.ndarray, rows: Tokens) -> Bool[np.ndarray, "*instances n K T"]:
    shape = _without_single_query(rows.mask.shape, -2)
    if chosen.shape not in (shape, rows.mask.shape):
        raise _misshapen(chosen, shape)
    mask = chosen.reshape(rows.mask.shape)
    wrong = (mask & ~rows.mask).any(-1) | ~mask.any(-1)
    if wrong.any():
        row = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InvalidInputError(
            "selection",
            f"row {row} chooses no token, or one that is masked",
            "Choose at least one token in each row, of those that the mask allows",
        )
    return mask


def _without_single_query(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape without the axis of queries, if there is one query a sequence."""
    if shape[axis] != 1:
        return shape
    return tuple(np.delete(shape, axis).tolist())


def _misshapen(chosen: np.ndarray, shape: tuple[int, ...]) -> InvalidInputError:
    return InvalidInputError(
        "selection",
        f"its shape is {chosen.shape}",
        f"Give {shape}: the number of a token for each sequence and query; or truth values for "
        "each token",
    )
