"""Checks of the arrays of a data set, and the errors they raise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory
from attractor.support.precision import as_plain, finite_where


def check_keys(keys: Float[np.ndarray, "..."]) -> Float[np.ndarray, "*instances n T d"]:
    """Keys, if they have the axes that keys have, and none of them is empty."""
    if keys.ndim not in (3, 4) or 0 in keys.shape:
        raise InvalidInputError(
            "keys",
            f"the shape is {keys.shape}",
            "Give (sequences, tokens, dimension), with a leading axis of instances if there "
            "are several data sets, and at least one of each",
        )
    return keys


def check_queries(
    queries: Float[np.ndarray, "..."], lead: tuple[int, ...], n: int
) -> Float[np.ndarray, "*instances sequence query e"]:
    """Gives queries their axis of queries per sequence."""
    fits = queries.shape[: len(lead) + 1] == (*lead, n) and 0 not in queries.shape
    if fits and queries.ndim == len(lead) + 2:
        return read_only(queries[..., None, :])
    if fits and queries.ndim == len(lead) + 3:
        return queries
    axes = ", ".join(str(size) for size in (*lead, n))
    raise InvalidInputError(
        "queries",
        f"the shape is {queries.shape}",
        f"Give ({axes}, e), or ({axes}, K, e) for K queries a sequence",
    )


def check_mask_size(argument: str, shape: tuple[int, ...]) -> None:
    """Checks that a mask fits into memory, with what is computed on the way to it."""
    require_memory(
        argument,
        f"a mask of shape {shape}",
        needed=3.0 * math.prod(shape),
        remedy=lambda available: f"Give at most {int(available / 3):,} pairs of query and token",
    )


def check_rows(rows: Any, shape: tuple[int, ...]) -> Bool[np.ndarray, "*instances sequence query"]:
    """Which rows are no padding, with an axis of queries."""
    array, expected = _with_query_axis(as_mask("rows", rows), shape)
    if array.shape != shape:
        raise InvalidInputError("rows", f"the shape is {array.shape}", f"Give {expected}")
    if not array.any((-1, -2)).all():
        raise InvalidInputError("rows", "all are padding", "Let at least one row count")
    return array


def as_mask(argument: str, mask: Any) -> Bool[np.ndarray, "..."]:
    """Truth values, which may be given as the integers 0 and 1.

    Raises:
        InvalidInputError: If they are anything else.
    """
    array = as_plain(argument, mask)
    if array.dtype.kind not in "bui" or not np.isin(array, (0, 1)).all():
        raise InvalidInputError(
            argument, f"the data type is {array.dtype}", "Give booleans, or the integers 0 and 1"
        )
    return array.astype(bool)


def check_mask(
    mask: Any,
    shape: tuple[int, ...],
    rows: Bool[np.ndarray, "*instances sequence query"] | None = None,
) -> Bool[np.ndarray, "*instances sequence query token"]:
    """Gives the mask its axis of queries, and checks that attention is left something to do.

    Args:
        mask: The mask; None where every token may be attended to.
        shape: What its shape must be.
        rows: False where a row is padding, and is left its first token alone.
    """
    check_mask_size("keys" if mask is None else "mask", shape)
    array = np.ones(shape, dtype=bool) if mask is None else as_mask("mask", mask)
    without_queries = (*shape[:-2], shape[-1])
    if array.shape == without_queries:
        array = array[..., None, :]
    elif array.shape != shape:
        raise InvalidInputError(
            "mask", f"the shape is {array.shape}", f"Give {without_queries} or {shape}"
        )
    array = np.array(np.broadcast_to(array, shape), dtype=bool)
    if rows is not None:
        array[~rows] = np.arange(shape[-1]) == 0
    if not array.any(-1).all():
        row = tuple(int(i) for i in np.argwhere(~array.any(-1))[0])
        raise InvalidInputError(
            "mask",
            f"the row at {row} has no token to attend to",
            "Leave out queries that are padding: give rows, False for each",
        )
    if not (array.sum(-1) > 1).any(axis=(-1, -2)).all():
        raise InvalidInputError(
            "mask" if mask is not None else "keys",
            "there is a data set in which no row has two tokens: attention has no choice",
            "Give at least one row with two tokens or more",
        )
    return read_only(array)


def check_labels(
    labels: Float[np.ndarray, "..."], shape: tuple[int, ...]
) -> Float[np.ndarray, "*instances sequence query"]:
    """Gives the labels their axis of queries."""
    labels, expected = _with_query_axis(labels, shape)
    if labels.shape != shape:
        raise InvalidInputError(
            "labels", f"the shape is {labels.shape}", f"Give {expected}: one label for every query"
        )
    return read_only(labels)


def _with_query_axis(
    array: np.ndarray, shape: tuple[int, ...]
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Numbers of one query a sequence with their axis of queries, and the shape to ask for."""
    if shape[-1] > 1:
        return array, shape
    return array[..., None] if array.shape == shape[:-1] else array, shape[:-1]


def check_weights(
    weights: Float[np.ndarray, "..."], rows: Bool[np.ndarray, "*instances sequence query"]
) -> Float[np.ndarray, "*instances sequence query"]:
    """Gives the weights of rows their axis of queries, and a mean of one in every instance.

    Those of rows that are padding may be anything.
    """
    weights, expected = _with_query_axis(weights, rows.shape)
    if weights.shape == rows.shape:
        weights = finite_where("weights", weights, rows)
    if weights.shape != rows.shape or (weights < 0).any():
        raise InvalidInputError(
            "weights",
            f"the shape is {weights.shape}, or one is negative",
            f"Give {expected}: a number >= 0 for every query",
        )
    mean = weights.mean((-1, -2), keepdims=True)
    if not mean.all():
        raise InvalidInputError("weights", "all are zero", "Let at least one row count")
    return read_only(weights / mean)


def check_instance_numbers(numbers: Any, count: int) -> Int[np.ndarray, "instances"]:
    """Numbers the instances, where the user has not."""
    if numbers is None:
        return read_only(np.arange(count))
    array = as_plain("instance_numbers", numbers)
    if array.shape != (count,) or array.dtype.kind not in "iu" or len(np.unique(array)) != count:
        raise InvalidInputError(
            "instance_numbers",
            f"got {numbers!r}",
            f"Give {count} distinct integers, one for every instance",
        )
    if array.min() < 0:
        raise InvalidInputError("instance_numbers", "one is negative", "Give integers >= 0")
    return read_only(array.astype(np.int64))


def read_only(array: np.ndarray) -> np.ndarray:
    """Makes an array read-only, so that what was checked once stays true."""
    array.setflags(write=False)
    return array
