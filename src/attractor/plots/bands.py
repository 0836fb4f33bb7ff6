"""Curves with a band over trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes

from attractor.plots.design.look import COLORS, SERIES
from attractor.support.errors import InvalidInputError

QUANTILES = (0.1, 0.9)
"""Quantiles over trials between which the band around a median is drawn."""
_BARS = 9
"""Places with a bar along each of several curves."""


def band(
    axes: Axes,
    values: xr.DataArray,
    along: str,
    *,
    center: Literal["median", "mean"] = "median",
    individuals: int = 0,
    label: str | None = None,
    look: Mapping[str, Any] = SERIES[0],
    slot: tuple[int, int] = (0, 1),
) -> None:
    """Draws the center of trials along one dimension, a band around it, and perhaps trials faintly.

    Around a median the band goes from the 10th to the 90th percentile; around a mean it is one
    standard deviation (of a sample, divisor N - 1) either way. Bands of several curves would hide
    one another: bars of their heights stand in their place, each curve's at places of its own.
    Values that are not finite are left out, and what has no place on a logarithmic axis too, so set
    the scale of the axes before.

    Args:
        axes: Where to draw.
        values: Dimension ``along`` with a coordinate; every other dimension counts trials.
        along: The dimension on the horizontal axis.
        center: Which center.
        individuals: How many trials to draw faintly, the first ones.
        label: Name in the legend.
        look: Line properties.
        slot: Which of how many that share the axes, from 0: ``(0, 2)`` and ``(1, 2)``.

    Raises:
        InvalidInputError: If there is no such dimension or center.
    """
    if along not in values.dims:
        dims = ", ".join(map(str, values.dims))
        raise InvalidInputError("along", f"{along!r} is no dimension", f"Give one of {dims}")
    if center not in ("median", "mean"):
        raise InvalidInputError("center", f"{center!r} is none", 'Give "median" or "mean"')
    numbers, places = _trials(axes, values, along)
    if not numbers.size:
        write_in_middle(axes, "no trial has this number")
        return
    axes.plot(places, _middle(numbers, center), label=label, **look)
    faint: Any = {"color": look["color"], "linewidth": 0.5, "alpha": 0.35, "zorder": 1.7}
    for trial in numbers.T[:individuals]:
        axes.plot(places, trial, **faint)
    if numbers.shape[1] > 1:
        low, high = _edges(numbers, center)
        if axes.get_yscale() == "log":
            low = _on_logarithmic_axis(low, numbers)
        if slot[1] > 1:
            _bars(axes, places, (low, high), look["color"], slot)
            return
        axes.fill_between(places, low, high, color=look["color"], alpha=0.13, linewidth=0)
        for edge in (low, high):
            axes.plot(places, edge, color=look["color"], linewidth=0.5, alpha=0.6)


def _bars(
    axes: Axes,
    places: Float[np.ndarray, "place"],
    edges: tuple[np.ndarray, np.ndarray],
    color: str,
    slot: tuple[int, int],
) -> None:
    """Bars between two edges at places evenly spread along the axis, between those of others."""
    number, of = slot
    along = np.log(places) if axes.get_xscale() == "log" else places
    at, taken = np.array([], int), np.array([], int)
    for each in range(number + 1):  # near the start several would be nearest to one record
        wanted = along[0] + (np.arange(_BARS) + (each + 0.5) / of) / _BARS * np.ptp(along)
        at = np.setdiff1d([np.abs(along - end).argmin() for end in wanted], taken)
        taken = np.union1d(taken, at)
    low, high = (edge[at] for edge in edges)
    axes.vlines(places[at], low, high, color=color, linewidth=1.0, alpha=0.75, zorder=1.9)
    for ends in (low, high):
        axes.plot(places[at], ends, "_", color=color, markersize=4, alpha=0.75, zorder=1.9)


def _trials(
    axes: Axes, values: xr.DataArray, along: str
) -> tuple[Float[np.ndarray, "place trial"], Float[np.ndarray, "place"]]:
    """Values with trials side by side, less what cannot be drawn, and their places."""
    places = values[along].values
    numbers = values.transpose(along, ...).values.astype(float).reshape(len(places), -1)
    shown = np.isfinite(numbers)
    if axes.get_xscale() == "log":
        shown &= (places > 0)[:, None]
    numbers = np.where(shown, numbers, np.nan)[shown.any(1)][:, shown.any(0)]
    return numbers, places[shown.any(1)]


def write_in_middle(axes: Axes, words: str) -> None:
    """Writes in the middle of empty axes why they are empty."""
    style: Any = {"ha": "center", "va": "center", "color": COLORS["gray"]}
    axes.text(0.5, 0.5, words, transform=axes.transAxes, **style)


def _middle(numbers: np.ndarray, center: str) -> np.ndarray:
    return np.nanmedian(numbers, axis=1) if center == "median" else np.nanmean(numbers, axis=1)


def _edges(numbers: np.ndarray, center: str) -> tuple[np.ndarray, np.ndarray]:
    if center == "median":
        low, high = np.nanquantile(numbers, QUANTILES, axis=1)
        return low, high
    middle = np.nanmean(numbers, axis=1)
    known = np.isfinite(numbers).sum(1)
    squares = np.nansum((numbers - middle[:, None]) ** 2, axis=1)
    deviation = np.sqrt(squares / np.maximum(known - 1, 1))
    return middle - deviation, middle + deviation


def _on_logarithmic_axis(low: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """An edge below zero, which has no place there, is drawn at the smallest value there is."""
    positive = numbers[numbers > 0]
    return np.where(low > 0, low, positive.min() if positive.size else np.nan)
