"""Numbers of two results side by side, with their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.plots._figure import Figure
from attractor.plots._style import COLORS, PAGE, SERIES
from attractor.precision import check_shape

_BESIDE = 0.16


def compared_figure(
    names: Sequence[str], rows: Sequence[str], values: Float[np.ndarray, "row 3 3"]
) -> Figure:
    """Numbers of two results with their intervals, and beside them their differences.

    Args:
        names: What the two are called.
        rows: What each number is.
        values: Of each number: the first result, the second, and their difference, each as median,
            low and high end; ends that are not finite are left out.

    Raises:
        InvalidInputError: If there are not two names, or not as many rows as numbers.
    """
    check_shape("names", (len(names),), (2,))
    check_shape("rows", (len(rows),), (len(values),))
    figure = Figure(figsize=(PAGE, 0.9 + 0.26 * max(len(rows), 2)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    places = np.arange(len(rows))
    looks = zip(names, SERIES[:2], ("o", "D"), (-_BESIDE, _BESIDE), strict=True)
    for number, (name, look, marker, beside) in enumerate(looks):
        drawn: dict[str, Any] = {"color": look["color"], "marker": marker, "label": name}
        _dots(left, values[:, number], places + beside, **drawn)
    right.axvline(0, color=COLORS["gray"], linewidth=0.8)
    _dots(right, values[:, 2], places, color=COLORS["black"], marker="s")
    left.set_yticks(places, rows)
    left.set_ylim(len(rows) - 0.5, -0.5)
    right.set_xlabel(f"{names[1]} less {names[0]}")
    for axes in (left, right):
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _dots(axes: Any, values: np.ndarray, places: np.ndarray, **look: Any) -> None:
    median, low, high = np.where(np.isfinite(values), values, np.nan).T
    axes.hlines(places, low, high, color=look["color"], linewidth=1.1)
    axes.plot(median, places, linestyle="none", markersize=4, **look)
