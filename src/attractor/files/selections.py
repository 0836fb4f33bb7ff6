"""The selection in a token file."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


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
