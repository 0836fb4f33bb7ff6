"""Attention heads over the course of the user's own training."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.plots._style import SERIES, panels_on_page
from attractor.plots.geometries import geometry_label

_MARKERS = "osD^vP*X"


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
    axes.set_xlabel("step")


def heads_figure(data: xr.Dataset) -> Figure:
    """Margin ratio, norm, and changes of selection of every head, against the step.

    Args:
        data: What ``HeadMonitor.to_xarray`` returns.
    """
    heads = data.sizes["head"]
    columns = min(heads, 4)
    figure, (ratio, norm, changes) = panels_on_page(2.3 + 0.16 * -(-heads // columns), 1, 3)
    head_curves(ratio, data["margin_ratio"])
    ratio.set_ylabel("margin ratio")
    highest = np.nanmax(data["margin_ratio"].values, initial=0.0)
    ratio.set_ylim(0, min(1.05, 1.15 * highest) if highest > 0 else 1.05)
    head_curves(norm, data["norm"], log=True)
    norm.set_ylabel(f"{geometry_label(str(data.attrs['geometry']))} norm of W")
    head_curves(changes, data["selection_changes"])
    changes.set_ylabel("queries that changed selection")
    changes.set_ylim(bottom=0)
    handles, labels = norm.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    return figure
