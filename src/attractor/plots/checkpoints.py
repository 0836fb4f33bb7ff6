"""Audits of checkpoints: how far every head grew, and how far beyond turned heads it turned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from attractor.audit.checkpoint_words import movements_of
from attractor.audit.movement import Direction
from attractor.plots._figure import Figure
from attractor.plots._style import COLORS
from attractor.plots.audit import UNKNOWN, WIDE, framed, name_axes

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
    found = movements_of(data)
    checkpoints = data["checkpoint"].to_numpy().tolist()
    layers, heads = (data.sizes[axis] for axis in ("layer", "head"))
    side = float(np.clip((WIDE / 2 - 1.1) / heads, 0.08, 0.62))
    tall = min(0.32, max(side, 0.16))
    height = 1.0 + tall * max(layers, 3)
    figure = Figure(figsize=(max(5.6, 2 * (1.1 + side * heads)), 0.4 + height * len(checkpoints)))
    panels = figure.subplots(len(checkpoints), 2, squeeze=False)
    largest = _largest(found, lambda one: one.get("norm_ratio"), 1.0)
    ratios = TwoSlopeNorm(1.0, 1 - max(largest, _LEAST_RATIO), 1 + max(largest, _LEAST_RATIO))
    largest = _largest(found, lambda one: one.get("deviations_from_draws"), 0.0)
    most = float(np.clip(largest, _LEAST_DEVIATIONS, _MOST_DEVIATIONS))
    deviations = TwoSlopeNorm(0.0, -most, most)
    last = data.attrs["last"]
    for checkpoint, (left, right) in zip(checkpoints, panels, strict=True):
        here = [one for one in found if one["checkpoint"] == checkpoint]
        for axes, variable, scale, written, label in (
            (left, "norm_ratio", ratios, _ratio, "norm ratio"),
            (right, "deviations_from_draws", deviations, _signed, "deviations from turned heads"),
        ):
            values = _table(here, variable, data)
            axes.set_facecolor(UNKNOWN)
            shown = np.ma.masked_invalid(np.clip(values, scale.vmin, scale.vmax))
            image = axes.imshow(shown, _COLORS, scale, aspect="auto")
            if side >= _ROOM:
                _write(axes, values, scale, written)
            bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.06, aspect=18)
            bar.set_label(label)
            bar.ax.yaxis.set_major_locator(MaxNLocator(5))
            name_axes(axes, data, tall)
        left.set_title(f"From {checkpoint} to {last}: size", pad=10)
        right.set_title("and direction of the rest", pad=10)
        for one in here:
            if one["direction"] in (Direction.TOWARD, Direction.AWAY):
                row, column = _place(one, data)
                frame = framed(row, column, narrow=side < 0.4)
                frame.set_edgecolor(COLORS["black"])  # cells are orange or blue
                right.add_patch(frame)
    look: Any = {"fill": False, "edgecolor": COLORS["black"], "linewidth": 1.8}
    handles = [
        Patch(**look, label="beyond the draws of all heads together"),
        Patch(facecolor=UNKNOWN, label="not asked"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def _largest(
    found: list[dict[str, Any]], value: Callable[[dict[str, Any]], Any], middle: float
) -> float:
    """How far a variable goes from the middle of its scale."""
    return max((abs(value(one) - middle) for one in found if value(one) is not None), default=0.0)


def _place(one: dict[str, Any], data: xr.Dataset) -> tuple[int, int]:
    """Row and column of a head."""
    row, column = (data[axis].to_numpy().tolist().index(one[axis]) for axis in ("layer", "head"))
    return row, column


def _table(found: list[dict[str, Any]], variable: str, data: xr.Dataset) -> np.ndarray:
    """A variable by layer and head, NaN where it is not known."""
    values = np.full((data.sizes["layer"], data.sizes["head"]), np.nan)
    for one in found:
        if one.get(variable) is not None:
            values[_place(one, data)] = one[variable]
    return values


def _write(
    axes: Axes, values: np.ndarray, scale: TwoSlopeNorm, written: Callable[[float], str]
) -> None:
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            dark = abs(float(scale(value)) - 0.5) > 0.33
            color = "white" if dark else COLORS["black"]
            axes.text(
                column, row, written(float(value)), ha="center", va="center", color=color,
                fontsize=7.5, zorder=4,
            )  # fmt: skip


def _ratio(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def _signed(value: float) -> str:
    shown = round(value, 1) + 0.0  # no zero is negative
    return f"{shown:+.1f}".replace("-", "\N{MINUS SIGN}")
