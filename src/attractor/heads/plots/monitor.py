"""Attention heads over the course of the user's own training."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.image import AxesImage

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE, SERIES
from attractor.plots.geometries import geometry_label
from attractor.plots.logarithmic import plain_numbers

_MARKERS = "osD^vP*X"
_MOST_CURVES = 8
"""Heads that are drawn as curves with a legend; more are rows of a map."""
_NAMED_ROWS = 30
"""Rows of a map that are all named."""
_LEAST = 1e-4
"""Margin ratio, of which and of smaller ones the color is the lightest."""


def head_curves(axes: Axes, data: xr.DataArray, *, log: bool = False) -> None:
    """Draws one number of every head against the step, where it is known.

    Args:
        axes: Where to draw.
        data: Dimensions ``step, head``.
        log: Whether the scale is logarithmic; numbers that are not positive are left out.
    """
    for place, name in enumerate(data["head"].values):
        values, look = data.sel(head=name), SERIES[place % len(SERIES)]
        known = values.notnull() & ((values > 0) if log else True)
        axes.plot(
            data["step"].values[known.values],
            values.values[known.values],
            color=look["color"],
            linestyle=look["linestyle"],
            marker=_MARKERS[place // len(SERIES) % len(_MARKERS)],
            markersize=3,
            linewidth=1.1,
            label=str(name),
        )
    if log:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    axes.set_xlabel("step")


def _head_map(axes: Axes, data: xr.DataArray, scale: Normalize) -> AxesImage:
    """Draws one number of every head as a row of colors, a column for each record; gray: unknown.

    Args:
        axes: Where to draw.
        data: Dimensions ``step, head``.
        scale: From numbers to shades.
    """
    values = data.transpose("head", "step").values
    heads, records = values.shape
    axes.set_facecolor("#dddddd")
    image = axes.imshow(np.ma.masked_invalid(values), "Blues", scale, aspect="auto")
    every = max(1, -(-heads // _NAMED_ROWS))
    rows = range(0, heads, every)
    axes.set_yticks(rows, [str(data["head"].values[row]) for row in rows])
    shown = np.unique(np.linspace(0, records - 1, min(records, 4)).round().astype(int))
    axes.set_xticks(shown, [f"{step:,}" for step in data["step"].values[shown]])
    axes.set_xlabel("step")
    axes.tick_params(length=0, labelsize=6)
    axes.spines[:].set_visible(False)
    axes.grid(False)
    return image


def heads_figure(data: xr.Dataset) -> Figure:
    """The attention of every head on what it selects, its margin ratio, norm and selections.

    Against the step: curves for up to eight heads, a row of colors for each of more. Margin ratios
    tell where a head goes once its attention is near 1.

    Args:
        data: What ``HeadMonitor.to_xarray`` returns.
    """
    weight = data["selected_probability"].mean(("sequence", "query"))
    norm = f"{geometry_label(str(data.attrs['geometry']))} norm of W"
    if data.sizes["head"] <= _MOST_CURVES:
        return _curves(data, weight, norm)
    return _maps(data, weight, norm)


def _curves(data: xr.Dataset, weight: xr.DataArray, norm: str) -> Figure:
    heads = data.sizes["head"]
    figure = Figure(figsize=(PAGE, 4.2 + (0.2 * -(-heads // 4) if heads > 1 else 0)))
    panels = figure.subplots(2, 2, sharex=True).ravel()
    drawn = (
        ("highest weight, mean", weight),
        ("margin ratio", data["margin_ratio"]),
        (norm, data["norm"]),
        ("queries that changed selection", data["selection_changes"]),
    )
    for axes, (label, values) in zip(panels, drawn, strict=True):
        head_curves(axes, values, log=label == norm)
        axes.set_ylabel(label)
    highest = np.nanmax(data["margin_ratio"].values, initial=0.0)
    panels[0].set_ylim(-0.03, 1.06)
    panels[1].set_ylim(0, min(1.06, 1.15 * highest) if highest > 0 else 1.06)
    panels[3].set_ylim(bottom=0)
    for axes in panels[:2]:
        axes.set_xlabel("")
    if heads == 1:
        figure.suptitle(f"head {data['head'].values[0]}", fontsize=8)
    else:
        handles, names = panels[2].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(heads, 4))
    return figure


def _maps(data: xr.Dataset, weight: xr.DataArray, norm: str) -> Figure:
    heads = data.sizes["head"]
    figure = Figure(figsize=(PAGE, 1.3 + float(np.clip(0.075 * heads, 1.2, 8.5))))
    panels = figure.subplots(1, 4, sharey=True)
    changes = data["selection_changes"]
    positive = data["norm"].where(data["norm"] > 0)
    low, high = float(positive.min()), float(positive.max())
    drawn = (
        ("highest weight,\nmean", weight, Normalize(0, 1)),
        ("margin ratio", data["margin_ratio"].clip(min=_LEAST), LogNorm(_LEAST, 1)),
        (norm, positive, LogNorm(low, high) if low < high else Normalize()),
        ("queries that\nchanged selection", changes, Normalize(0, max(1, float(changes.max())))),
    )
    for axes, (title, values, scale) in zip(panels, drawn, strict=True):
        image = _head_map(axes, values, scale)
        look: Any = {"location": "bottom", "aspect": 14, "pad": 0.03, "shrink": 0.9}
        bar = figure.colorbar(image, ax=axes, **look)
        bar.ax.tick_params(labelsize=6)
        axes.set_title(title)
    panels[0].set_ylabel("head")
    figure.supxlabel("gray: not measured", fontsize=7, color=COLORS["gray"])
    return figure
