"""Sensitivity maps: which token moves the attractor."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from attractor.errors import InvalidInputError
from attractor.plots._figure import Figure
from attractor.plots._style import COLORS
from attractor.plots.attention import MOST_SEQUENCES, ring, ticks


def sensitivity_map(axes: Axes, data: xr.Dataset) -> AxesImage:
    """Draws how fast the smallest norm changes as each key moves, selected tokens ringed.

    Args:
        axes: Where to draw.
        data: ``Sensitivity.to_xarray()`` of one data set of tokens.

    Raises:
        InvalidInputError: If it is of several data sets, of a problem without tokens, or of one
            without a solution.
    """
    if "keys" not in data or "instance" in data.dims or data["keys"].isnull().any():
        raise InvalidInputError(
            "data",
            "it is not the sensitivity of one solved data set of tokens",
            "Give sensitivity.to_xarray(), with .isel(instance=...) where there are several",
        )
    rates = np.linalg.norm(data["keys"].transpose("sequence", "token", "row").values, axis=-1)
    rates = rates[:MOST_SEQUENCES]
    selected = data["selected"].any("query").transpose("sequence", "token").values[: len(rates)]
    image = axes.imshow(rates, vmin=0, cmap="Blues", aspect="auto")
    sequence, token = np.nonzero(selected)
    rows, columns = rates.shape
    axes.plot(token, sequence, **ring(rows))
    axes.set(xlabel="token", ylabel="sequence", xticks=ticks(columns), yticks=ticks(rows))
    axes.grid(False)
    return image


def sensitivity_figure(data: xr.Dataset) -> Figure:
    """A sensitivity map with its scale and legend; says where derivatives are one-sided only.

    Args:
        data: ``Sensitivity.to_xarray()`` of one data set of tokens.
    """
    rows, columns = data.sizes.get("sequence", 1), data.sizes.get("token", 1)
    size = (2.4 + 0.26 * min(columns, 24), 1.7 + 0.22 * min(rows, MOST_SEQUENCES))
    figure = Figure(figsize=size)
    axes = figure.subplots()
    image = sensitivity_map(axes, data)
    bar = figure.colorbar(image, ax=axes)
    bar.set_label("change of the norm\nper unit move of the key")
    bar.outline.set_edgecolor(COLORS["gray"])
    notes = []
    if rows > MOST_SEQUENCES:
        notes.append(f"first {MOST_SEQUENCES} of {rows} sequences")
    if not bool(data["differentiable"]):
        notes.append("one-sided derivatives only")
    axes.set_title("; ".join(notes), fontweight="normal")
    legend = Line2D([], [], label="token selected", **ring(1))
    figure.legend(handles=[legend], loc="outside lower center")
    return figure
