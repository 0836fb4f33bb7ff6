"""The error of a head by length: over its queries, and over heads with scaled scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.checks import check_kinds
from attractor.errors import InvalidInputError
from attractor.precision import LARGEST, as_float64
from attractor.prompt.length.curves import ErrorCurves
from attractor.prompt.length.result import QUANTILES, PromptLength, quantiles

if TYPE_CHECKING:
    import xarray as xr

_QUERIES = 101
_LARGEST = 16.0
_BEYOND_MEDIAN = 4 / 3
"""Queries with larger deviations than so many times the median one are put above the median."""


def error_quantiles(found: PromptLength, lengths: Float[ArrayLike, "length"]) -> xr.Dataset:
    """Quantiles over the queries of the errors at lengths.

    Args:
        found: The result for the head.
        lengths: Lengths ``L`` from 1 to 1e12.

    Returns:
        ``error`` along the scores and ``output_error`` of the whole output, by ``quantile`` and
        ``length``, NaN where they are those of queries with deviations beyond 32;
        ``freezing_length`` by ``quantile``; and ``law_output_error`` of the law itself where the
        result has it.

    Raises:
        InvalidInputError: If a length is outside.
    """
    check_kinds(found=(found, PromptLength))
    import xarray as xr

    along, output = found.errors_at(lengths)
    data = xr.Dataset(
        {
            "error": (("quantile", "length"), _over_queries(along)),
            "output_error": (("quantile", "length"), _over_queries(output)),
            "freezing_length": ("quantile", quantiles(found.freezing_length)),
        },
        {"quantile": np.array(QUANTILES), "length": np.asarray(lengths, float)},
    )
    if found.law_errors is not None:
        exact = _over_queries(found.law_errors.errors_at(lengths))
        data["law_output_error"] = ("quantile", "length"), exact
    return data


def lengths_to_draw(found: PromptLength) -> Float[np.ndarray, "length"]:
    """Lengths from one token to beyond those needed by nearly all queries."""
    needed = quantiles(found.required[:, -1])[2]
    most = np.clip(3 * needed, 1e5, 1e9) if np.isfinite(needed) else 1e9
    return np.geomspace(1, max(most, found.lengths.max(initial=1)), 121)


def phase_diagram(
    found: PromptLength,
    horizons: Float[ArrayLike, "horizon"],
    lengths: Float[ArrayLike, "length"],
) -> xr.Dataset:
    """The error along the scores if the score matrix is scaled to have a horizon.

    Scaling multiplies the score deviation of every query, so that one head gives a whole diagram.

    Args:
        found: The result for the head.
        horizons: Horizons ``H`` to scale to.
        lengths: Lengths ``L`` from 1 to 1e12.

    Returns:
        ``error``, the median over queries of the relative root-mean-square error, NaN where the
        median query has a deviation beyond 16, by ``horizon`` and ``length``; queries with the
        largest deviations, whose errors are near 1, are counted but not compared. And
        ``score_deviation`` and ``freezing_length`` of the median query, by ``horizon``.

    Raises:
        InvalidInputError: If the horizon of the head is zero, one requested is not above zero, or a
            length is outside.
    """
    lengths = np.atleast_1d(as_float64("lengths", lengths))
    check_kinds(found=(found, PromptLength))
    import xarray as xr

    wanted = as_float64("horizons", horizons, largest=LARGEST)
    if not found.horizon > 0:
        raise InvalidInputError(
            "found", "its horizon is zero, so that no scaling changes it", "Give another head"
        )
    if wanted.ndim != 1 or not wanted.size or not (wanted > 1 / LARGEST).all():
        raise InvalidInputError("horizons", "they are not one row above 0", "Give such a row")
    ordered = np.sort(found.score_deviation)
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), _QUERIES)).round().astype(int)
    deviations = wanted[:, None] / found.horizon * ordered[places]
    typical = wanted / found.horizon * quantiles(ordered)[1]
    largest = min(max(8.0, _BEYOND_MEDIAN * typical.max()), _LARGEST)
    known = deviations <= largest
    error = np.full((*deviations.shape, np.size(lengths)), np.nan)
    square, _ = ErrorCurves.of(deviations[known]).at(lengths)
    with np.errstate(divide="ignore"):  # a query whose scores do not vary
        error[known] = np.sqrt(square) / deviations[known][:, None]
    return xr.Dataset(
        {
            "error": (("horizon", "length"), np.stack([_over_queries(one)[1] for one in error])),
            "score_deviation": ("horizon", typical),
            "freezing_length": ("horizon", np.exp(np.minimum(typical**2 / 2, 700))),
        },
        {"horizon": wanted, "length": np.asarray(lengths, float)},
    )


def _over_queries(values: Float[np.ndarray, "query length"]) -> Float[np.ndarray, "3 length"]:
    return np.stack([quantiles(column) for column in values.T], axis=-1)
