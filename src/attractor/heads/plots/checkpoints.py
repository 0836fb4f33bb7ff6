"""Audits of checkpoints: how far every head grew, and how far beyond turned heads it turned."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from attractor.heads.checkpoints.checkpoint_words import PLACE, TOLD, deviations_from_draws
from attractor.heads.plots.audit import UNKNOWN, WIDE, framed, name_axes
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS

_COLORS = LinearSegmentedColormap.from_list(
    "orange to blue", [COLORS["orange"], "white", COLORS["blue"]]
)
_LEAST_RATIO, _LEAST_DEVIATIONS = 0.1, 4.0
"""Half-widths of scales, at least: what is near one, or is chance, is to look pale."""
_MOST_DEVIATIONS = 10.0
_ROOM = 0.27
"""Width of a cell from which on numbers are written into it, in inches."""


def checkpoint_figure(data: xr.Dataset) -> Figure:
    """Layers by heads, for each checkpoint: the norm ratio, and the direction of the rest.

    Left: the norm of the last matrix over that of the checkpoint's. Right: the cosine of the
    tangential change with the margin solution, in standard deviations from its draws, which have
    selections of their own; heads with a frame are beyond the draws of all heads together.

    Args:
        data: The arrays of an audit of checkpoints.
    """
    checkpoints, last = data["checkpoint"].to_numpy().tolist(), data.attrs["last"]
    layers, heads = (data.sizes[axis] for axis in ("layer", "head"))
    side = float(np.clip((WIDE / 2 - 1.1) / heads, 0.08, 0.62))
    tall = min(0.32, max(side, 0.16))
    height = 1.0 + tall * max(layers, 3)
    figure = Figure(figsize=(max(5.6, 2 * (1.1 + side * heads)), 0.4 + height * len(checkpoints)))
    panels = figure.subplots(len(checkpoints), 2, squeeze=False)
    turned = deviations_from_draws(data)
    ratios = np.full(turned.shape, np.nan)
    if "norm_ratio" in data:
        ratios = data["norm_ratio"].transpose(*PLACE).to_numpy()
    half = max(float(np.nanmax(np.abs(ratios - 1), initial=0)), _LEAST_RATIO)
    most = np.nanmax(np.abs(turned), initial=_LEAST_DEVIATIONS)
    most = min(float(most), _MOST_DEVIATIONS)
    shown: list[tuple[np.ndarray, TwoSlopeNorm, str, str]] = [
        (ratios, TwoSlopeNorm(1, 1 - half, 1 + half), ".2f", "norm ratio"),
        (turned, TwoSlopeNorm(0, -most, most), "+z.1f", "deviations from turned heads"),
    ]
    told = np.isin(data["direction"].transpose(*PLACE).to_numpy(), TOLD)
    for place, (checkpoint, row) in enumerate(zip(checkpoints, panels, strict=True)):
        for axes, (of_all, scale, written, label) in zip(row, shown, strict=True):
            values = of_all[place]
            axes.set_facecolor(UNKNOWN)
            clipped = np.ma.masked_invalid(np.clip(values, scale.vmin, scale.vmax))
            image = axes.imshow(clipped, _COLORS, scale, aspect="auto")
            for at in np.argwhere(np.isfinite(values) & (side >= _ROOM)):
                value = values[tuple(at)]
                dark = abs(float(scale(value)) - 0.5) > 0.33
                look: Any = {"ha": "center", "va": "center", "fontsize": 7.5, "zorder": 4}
                text = f"{value:{written}}".removeprefix("0").replace("-", "\N{MINUS SIGN}")
                axes.text(*at[::-1], text, color="white" if dark else COLORS["black"], **look)
            bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.06, aspect=18)
            bar.set_label(label)
            bar.ax.yaxis.set_major_locator(MaxNLocator(5))
            name_axes(axes, data, tall)
        row[0].set_title(f"From {checkpoint} to {last}: size", pad=10)
        row[1].set_title("and direction of the rest", pad=10)
        for layer, head in np.argwhere(told[place]):
            frame = framed(int(layer), int(head), narrow=side < 0.4)
            frame.set_edgecolor(COLORS["black"])  # cells are orange or blue
            row[1].add_patch(frame)
    outline = {"fill": False, "edgecolor": COLORS["black"], "linewidth": 1.8}
    handles = [
        Patch(**outline, label="beyond the draws of all heads together"),
        Patch(facecolor=UNKNOWN, label="not asked"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
