"""Curves against iterations, radius or time, with a band over trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from attractor.plots.bands import band
from attractor.plots.design.look import COLORS, SERIES
from attractor.plots.logarithmic import plain_numbers
from attractor.plots.plane.tokens import HALO
from attractor.results import axis_of

_CUT = "cut"
"""Name of the words that say what is cut off, which later curves change."""
AXIS_LABELS = {
    "step": "iteration",
    "radius": "radius",
    "time": "time",
    "logarithmic_time": "natural logarithm of the time",
    "epoch": "epoch",
}
"""The label of each axis of records."""


def band_curve(
    axes: Axes,
    values: xr.DataArray,
    *,
    label: str | None = None,
    look: Mapping[str, Any] = SERIES[0],
    slot: tuple[int, int] = (0, 1),
) -> None:
    """Draws the median over trials and a band from the 10th to 90th percentile, along the records.

    Step 0 has no place on a logarithmic axis and is left out, as are trials without a value.

    Args:
        axes: Where to draw.
        values: Dimensions ``instance, seed`` and an axis of records.
        label: Name in the legend.
        look: Line properties.
        slot: Which of how many that share the axes; several have bars in place of bands.
    """
    axis = axis_of(values)
    if axis != "logarithmic_time":
        axes.set_xscale("log")
    axes.set_xlabel(AXIS_LABELS[axis])
    band(axes, values, axis, label=label, look=look, slot=slot)


def margin_ratio(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """Normalized margin ratio of the trained matrix; 1 where the predicted direction is reached."""
    _limit_line(axes)
    band_curve(axes, data.margin_ratio, **options)
    axes.set_ylabel("normalized margin ratio")
    _keep_in_view(axes)


def margin_ratio_shortfall(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """One minus the margin ratio, on a logarithmic axis."""
    band_curve(axes, 1 - data.margin_ratio, **options)
    _log_axis(axes, "1 \N{MINUS SIGN} margin ratio")


def correlation(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """Correlation of the trained matrix with the solution."""
    _limit_line(axes)
    band_curve(axes, data.correlation, **options)
    axes.set_ylabel("correlation with the solution")
    _keep_in_view(axes)


def correlation_shortfall(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """One minus the correlation, on a logarithmic axis."""
    band_curve(axes, 1 - data.correlation, **options)
    _log_axis(axes, "1 \N{MINUS SIGN} correlation")


def selected_probability(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """Softmax weight on the selected token, averaged over sequences."""
    _limit_line(axes)
    band_curve(axes, data.selected_probability, **options)
    axes.set(ylabel="attention on selected token", ylim=(-0.03, 1.06))


def unselected_probability(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """Softmax weight off the selected token, as a power of ten: it soon leaves floating point."""
    band_curve(axes, data.log_unselected_probability / np.log(10), **options)
    axes.set_ylabel("attention elsewhere, log10")


def norm_growth(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """Norm of the trained matrix: attention sharpens for as long as it grows."""
    band_curve(axes, data.norm, **options)
    _log_axis(axes, "norm of the trained matrix")


def loss(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """Training loss."""
    band_curve(axes, data.loss, **options)
    axes.set_ylabel("training loss")


def _limit_line(axes: Axes) -> None:
    """Marks the value 1, once."""
    if not axes.lines:
        axes.axhline(1, color=COLORS["gray"], linewidth=0.9, linestyle=(0, (1, 2)))


def _log_axis(axes: Axes, label: str) -> None:
    # Rounding may carry a ratio past 1, where a logarithmic axis has no place for it.
    axes.set_yscale("log", nonpositive="mask")
    plain_numbers(axes.yaxis)
    axes.set_ylabel(label)


def _keep_in_view(axes: Axes) -> None:
    """Shows the lowest curve, but nothing below -1, up to just over 1; says what is cut off."""
    curves = [np.asarray(line.get_ydata()) for line in axes.lines]  # bars may have no record
    lowest = min(float(np.nanmin(curve)) for curve in curves if curve.size)
    axes.set_ylim(min(max(lowest, -1), 0) - 0.06, 1.06)
    for words in [one for one in axes.texts if one.get_gid() == _CUT]:
        words.remove()
    if lowest < -1:  # where curves are that low, the corner is empty
        said = f"cut at \N{MINUS SIGN}1, lowest \N{MINUS SIGN}{-lowest:.3g}"
        look: Any = {"fontsize": 6.5, "color": COLORS["gray"], "gid": _CUT, "path_effects": HALO}
        look["in_layout"] = False  # it is to take no room from the panels
        axes.text(0.01, 0.02, said, transform=axes.transAxes, **look)
