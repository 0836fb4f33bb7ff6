"""What the arrays of a head file mean together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.errors import InvalidInputError
from attractor.files.head_layout import DIVISION, HEAD_LAYOUT, HEAD_MARKS, fewest_tokens
from attractor.files.head_loaded import LoadedHead
from attractor.precision import as_float64

if TYPE_CHECKING:
    from attractor.prompt.measures import Empirical, Gaussian

_FEWEST_QUERIES = 2


def interpret_head(arrays: Mapping[str, np.ndarray], file: str) -> LoadedHead:
    """Puts together what lies in a head file.

    Args:
        arrays: The arrays by name.
        file: Name of the file, for errors.

    Raises:
        InvalidInputError: If an array is missing, unknown, at odds with another, or cannot be
            used.
    """
    from attractor.prompt.head import Head

    _check_names(arrays, file)
    W_Q, W_K, W_V = (_matrix(name, arrays[name]) for name in HEAD_MARKS)
    if len(W_Q) != len(W_K):
        raise InvalidInputError(
            "W_Q",
            f"it has {len(W_Q)} rows and W_K has {len(W_K)}",
            f"Give {HEAD_LAYOUT['W_Q'][0]} and {HEAD_LAYOUT['W_K'][0]}: queries and keys have one "
            "dimension; transpose matrices that multiply from the right",
        )
    d, e = W_K.shape[1], W_Q.shape[1]
    if W_V.shape[1] != d:
        raise InvalidInputError(
            "W_V", f"the shape is {W_V.shape}", f"Give (v, {d}): tokens have {d} numbers"
        )
    head = Head.from_factors(
        keys=W_K, queries=W_Q, values=W_V, divide_by_sqrt_head_dimension=_division(arrays[DIVISION])
    )
    tokens = _law(arrays, "tokens", "", d, fewest_tokens(d))
    if "queries" in arrays or "query_covariance" in arrays:
        queries = _law(arrays, "queries", "query_", e, _FEWEST_QUERIES)
    elif d == e:
        queries = tokens
    else:
        raise InvalidInputError(
            "queries",
            f"{file} has none, and they are no tokens: W_Q is for {e} numbers, W_K for {d}",
            f"Add queries (m, {e}) or query_covariance ({e}, {e})",
        )
    return LoadedHead(head, tokens, queries)


def _check_names(arrays: Mapping[str, np.ndarray], file: str) -> None:
    unknown = next((name for name in sorted(arrays) if name not in HEAD_LAYOUT), None)
    if unknown is not None:
        raise InvalidInputError(
            unknown,
            f"{file} has an array of this name, which means nothing for a head",
            f"Rename or remove it; known are {', '.join(HEAD_LAYOUT)}",
        )
    for name in HEAD_MARKS:
        if name not in arrays:
            raise InvalidInputError(
                name, f"{file} has no such array", f"Add {name} {HEAD_LAYOUT[name][0]}"
            )
    if DIVISION not in arrays:
        raise InvalidInputError(
            DIVISION,
            f"{file} does not say whether scores are divided by the root of the head dimension, "
            "and it is never guessed",
            f"Add {DIVISION}=True for (W_K x)^T W_Q z / sqrt(k), as most software has it, or False",
        )
    if "tokens" not in arrays and "covariance" not in arrays:
        raise InvalidInputError(
            "tokens",
            f"{file} has neither them nor a covariance",
            f"Add tokens {HEAD_LAYOUT['tokens'][0]}, sampled ones, or covariance (d, d)",
        )
    for samples, prefix in (("tokens", ""), ("queries", "query_")):
        mean, covariance = f"{prefix}mean", f"{prefix}covariance"
        extra = next((name for name in (covariance, mean) if name in arrays), None)
        if samples in arrays and extra is not None:
            raise InvalidInputError(
                extra, f"it stands beside {samples}, which have their own", "Keep one of the two"
            )
        if mean in arrays and covariance not in arrays:
            raise InvalidInputError(
                covariance, f"{file} has {mean} without it", f"Add {covariance}"
            )


def _matrix(name: str, value: Any) -> np.ndarray:
    array = as_float64(name, value)
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInputError(name, f"the shape is {array.shape}", f"Give {HEAD_LAYOUT[name][0]}")
    return array


def _division(value: np.ndarray) -> bool:
    if value.dtype != bool or value.shape != ():
        raise InvalidInputError(
            DIVISION,
            f"its shape is {value.shape} and its type {value.dtype}",
            "Save one truth value, such as numpy.array(True)",
        )
    return bool(value)


def _law(
    arrays: Mapping[str, np.ndarray], samples: str, prefix: str, dimension: int, fewest: int
) -> Gaussian | Empirical:
    """The law of tokens or queries: their samples, or Gaussian with the moments given."""
    from attractor.prompt.measures import Empirical, Gaussian

    if samples in arrays:
        points = _matrix(samples, arrays[samples])
        if points.shape[1] != dimension:
            raise InvalidInputError(
                samples, f"the shape is {points.shape}", f"Give (n, {dimension})"
            )
        if len(points) < fewest:
            raise InvalidInputError(
                samples,
                f"there are {len(points)} of dimension {dimension}, too few for their covariance",
                f"Give at least {fewest}",
            )
        return Empirical(points)
    mean_name, name = f"{prefix}mean", f"{prefix}covariance"
    covariance = _matrix(name, arrays[name])
    if covariance.shape != (dimension, dimension):
        raise InvalidInputError(
            name, f"the shape is {covariance.shape}", f"Give ({dimension}, {dimension})"
        )
    mean = as_float64(mean_name, arrays.get(mean_name, np.zeros(dimension)))
    if mean.shape != (dimension,):
        raise InvalidInputError(mean_name, f"the shape is {mean.shape}", f"Give ({dimension},)")
    try:
        return Gaussian(mean, arrays[name])  # in its own type, whose rounding is allowed for
    except InvalidInputError as error:
        raise InvalidInputError(name, error.problem, error.remedy) from None
