"""Attention maps: which token each sequence attends to."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from attractor.plots.design.look import COLORS, PREDICTED

MOST_SEQUENCES = 24
"""Sequences shown in one map; more would be too small to read."""


def attention_map(
    axes: Axes, weights: xr.DataArray, predicted: xr.DataArray | None = None
) -> AxesImage:
    """Draws softmax weights, a row for each sequence, with the predicted token of each ringed.

    Args:
        axes: Where to draw.
        weights: Softmax weights, dimensions ``sequence, token``; NaN where masked.
        predicted: Position of the predicted token, dimension ``sequence``; -1 for none.
    """
    shown = weights.transpose("sequence", "token")[:MOST_SEQUENCES]
    rows, columns = shown.shape
    axes.set_facecolor("#eeeeee")
    image = axes.imshow(shown.values, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    if predicted is not None:
        positions = predicted.values[:rows]
        known = np.flatnonzero(positions >= 0)
        axes.plot(positions[known], known, **ring(rows))
    axes.set(xlabel="token", ylabel="sequence", xticks=ticks(columns), yticks=ticks(rows))
    axes.grid(False)
    return image


def predicted_legend() -> list[Line2D]:
    """The legend of an attention map."""
    return [Line2D([], [], label="token predicted", **ring(1))]


def ring(rows: int) -> dict:
    """The marker put round a token, small where there are many rows."""
    return {
        "linestyle": "none",
        "marker": "o",
        "markersize": float(np.clip(110 / rows, 4, 9)),
        "markerfacecolor": "none",
        "markeredgecolor": PREDICTED,
        "markeredgewidth": 1.6,
    }


def ticks(count: int) -> np.ndarray:
    """Every position while there are few, else about ten of them."""
    return np.arange(0, count, max(1, int(np.ceil(count / 10))))


def colorbar(image: AxesImage, axes: Axes) -> None:
    """Puts the scale of attention weights beside ``axes``."""
    figure = axes.figure
    bar = figure.colorbar(image, ax=axes, shrink=0.85)
    bar.set_label("attention weight")
    bar.outline.set_edgecolor(COLORS["gray"])
