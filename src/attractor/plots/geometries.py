"""One margin problem in several geometries: its solutions, and each measured in every norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from attractor.geometry.exponent import exponent_after, exponent_text
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS

_FAMILIES = {"l": r"$\ell_{%s}$", "schatten": "Schatten-$%s$"}


def geometry_label(name: str) -> str:
    """The name of a geometry as a paper prints it; the name itself of a norm of the user's own."""
    for family, label in _FAMILIES.items():
        if (p := exponent_after(family, name)) is not None:
            return label % exponent_text(p).replace("inf", r"\infty")
    return "Frobenius" if name == "frobenius" else name.replace("$", r"\$")


def solution_map(axes: Axes, W: xr.DataArray) -> AxesImage:
    """Draws a matrix over its largest entry, zero in white, negative entries blue.

    Args:
        axes: Where to draw.
        W: Dimensions ``row, column``.
    """
    entries = W.transpose("row", "column").values
    largest = np.abs(entries).max(initial=0) or 1.0
    image = axes.imshow(entries / largest, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.grid(False)
    return image


def numbers_on_colors(
    axes: Axes,
    values: np.ndarray,
    text: Callable[[float], str],
    *,
    most: float = 1.0,
    white_from: float = 0.6,
    aspect: Literal["auto", "equal"] = "auto",
) -> AxesImage:
    """Draws a table of numbers on colors from white to blue.

    Args:
        axes: Where to draw.
        values: The numbers, row by row.
        text: A number as it is written.
        most: Number that takes the darkest color.
        white_from: Share of it from which numbers are written in white.
        aspect: Whether cells are square.
    """
    image = axes.imshow(values, cmap="Blues", vmin=0, vmax=most, aspect=aspect)
    for (row, column), value in np.ndenumerate(values):
        color = "white" if value > white_from * most else COLORS["black"]
        axes.text(column, row, text(value), ha="center", va="center", color=color, fontsize=7)
    axes.grid(False)
    return image


def _margin_ratio_matrix(axes: Axes, ratios: xr.DataArray) -> AxesImage:
    """Draws margin ratios as a table of numbers on colors.

    Args:
        axes: Where to draw.
        ratios: Dimensions ``geometry, measured_in``.
    """
    values = ratios.transpose("geometry", "measured_in").values
    image = numbers_on_colors(axes, values, "{:.2f}".format)
    places = np.arange(len(values))
    axes.set_xticks(places, [geometry_label(str(n)) for n in ratios["measured_in"].values])
    axes.set_yticks(places, [geometry_label(str(n)) for n in ratios["geometry"].values])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="measured in the norm", ylabel="solution in the norm")
    return image


def geometries_figure(data: xr.Dataset) -> Figure:
    """The solution of one problem in each geometry above their margin ratios.

    Args:
        data: What ``attractor.analysis.compare_geometries`` returns.
    """
    names = [str(name) for name in data["geometry"].values]
    figure = Figure(figsize=(max(6.4, 0.95 * len(names)), 1.6 + 0.34 * len(names)))
    heights = [1.25, 0.6 + 0.34 * len(names)]
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=heights))
    maps = np.atleast_1d(top.subplots(1, len(names)))
    for axes, name in zip(maps, names, strict=True):
        solution_map(axes, data["W"].sel(geometry=name))
        axes.set_title(geometry_label(name), fontsize=8, fontweight="normal", loc="center")
    scale = top.colorbar(maps[0].images[0], ax=maps, pad=0.01, fraction=0.02, ticks=[-1, 0, 1])
    scale.set_label("entry over\nthe largest", fontsize=7)
    image = _margin_ratio_matrix(panel := bottom.subplots(), data["margin_ratio"])
    bottom.colorbar(image, ax=panel, pad=0.02).set_label("margin ratio")
    return figure
