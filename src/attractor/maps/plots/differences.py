"""Differences of two results, each with its interval."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attractor.plots.style.figure import Figure
from attractor.plots.style.look import COLORS, PAGE
from attractor.support.errors import InvalidInputError


def differences_figure(data: xr.Dataset) -> Figure:
    """Differences of two results as shares of the larger of both, so that all have one axis.

    Args:
        data: ``first``, ``second``, ``difference``, ``low`` and ``high`` over ``index``, the names
            of the numbers: the table of what ``attractor.paired`` returns, by ``to_xarray``.

    Raises:
        InvalidInputError: If it is no such table, or has no rows.
    """
    if not {"first", "second", "difference", "low", "high"} <= {*data} or not data.sizes["index"]:
        raise InvalidInputError("data", "it has no differences", "Give those of attractor.paired")
    figure = Figure(figsize=(PAGE, 0.8 + 0.2 * max(data.sizes["index"], 2)))
    axes = figure.subplots()
    places = np.arange(data.sizes["index"])
    larger = abs(data[["first", "second"]]).to_array().max("variable")
    axes.axvline(0, color=COLORS["gray"], linewidth=0.8)
    shares = data[["difference", "low", "high"]] / larger.where(larger > 0, 1)
    between, low, high = shares.where(np.isfinite(shares)).to_array().values
    axes.hlines(places, low, high, color=COLORS["black"], linewidth=1.1)
    axes.plot(between, places, linestyle="none", marker="s", markersize=4, color=COLORS["black"])
    axes.set_yticks(places, data["index"].values)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_xlabel("difference, as a share of the larger of the two")
    return figure
