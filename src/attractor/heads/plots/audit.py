"""Audits of heads: their map, accuracies beside null draws, and moves between checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from attractor.heads.audit.margin_solution import ARRIVED
from attractor.heads.audit.result import (
    BEATS_NULLS,
    by_clearness,
    deviations_above_null,
    heads,
    name,
    of_verdict,
)
from attractor.heads.checkpoints.checkpoint_result import PLACE, TOLD, deviations_from_draws
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS
from attractor.plots.design.roles import tint

WIDE = 9.2
"""Width of a figure that fills a page on a screen, in inches."""
_SHADES = LinearSegmentedColormap.from_list("blues", ["white", COLORS["blue"], "#00304d"])
_DARKEST = (6.0, 10.0)
"""Deviations that have the darkest shade, at least and at most: chance alone is to look pale, and
one head with a fixed offset is not to make all others so."""
_ROOM_FOR_WORDS, _ROOM_FOR_NUMBERS = 0.55, 0.36
"""Widths of a cell from which on words and numbers are written into it, in inches."""
UNKNOWN = "#e2e2e2"
"""Color of cells of which nothing is known."""
_BANDS = ((0, 1, 0.78), (0.05, 0.95, 0.55))
"""Bands of null draws: the quantiles between, and how pale."""
_ACROSS = 5
"""Panels beside each other."""
_SIMPLER: dict[str, tuple[str, Any, str]] = {
    "chance": ("black", ":", "chance"),
    "accuracy_query_free": ("purple", "-", "without the query"),
    "accuracy_offset": ("green", "--", "a fixed offset"),
}
"""Rules beside a learned one: color, line and name."""
_NAMED = 80
"""Heads with a name below; of more there is no room for names."""


def audit_map_figure(data: xr.Dataset) -> Figure:
    """The heads of a model, layers by heads.

    The shade is the accuracy in standard deviations above the head's own null draws, the number
    the accuracy, the word beneath what the head selects; heads with a frame beat the draws of all
    heads together. Where there is no room for them, numbers and words are left out.

    Args:
        data: The arrays of an audit.
    """
    above = deviations_above_null(data)
    layers, count = above.shape
    side = min(0.72, (WIDE - 1.5) / count)
    tall = 0.5 if side > _ROOM_FOR_WORDS else min(0.34, side)
    figure = Figure(figsize=(max(3.6, 1.5 + side * count), 1.05 + tall * max(layers, 2)))
    axes = figure.subplots()
    most = np.nanmax(above, initial=0.0)
    highest = float(np.clip(most, *_DARKEST))
    shades = Normalize(0, highest)
    axes.set_facecolor(UNKNOWN)
    axes.imshow(np.ma.masked_invalid(np.clip(above, 0, highest)), _SHADES, shades, aspect="auto")
    found = {(one["layer"], one["head"]): one for one in heads(data)}
    for row, layer in enumerate(data["layer"].to_numpy()):
        for column, head in enumerate(data["head"].to_numpy()):
            one = found.get((int(layer), int(head)))
            if one is None:
                axes.add_patch(_cell(row, column, facecolor="white", edgecolor="none"))
                continue
            if one["learnable"] in BEATS_NULLS:
                axes.add_patch(framed(row, column, narrow=side < 0.4))
            _write(axes, row, column, one, shades(min(above[row, column], highest)), side)
    name_axes(axes, data, tall)
    handles = [Patch(facecolor=UNKNOWN, label="not tested")]
    if np.isfinite(above).any():
        bar = figure.colorbar(
            ScalarMappable(shades, _SHADES),
            ax=axes,
            pad=0.015,
            fraction=0.05,
            aspect=22,
            extend="max" if most > highest else "neither",
        )
        bar.ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        bar.set_label("standard deviations above\nits own null draws")
        frame = {"fill": False, "edgecolor": COLORS["orange"], "linewidth": 1.8}
        handles.insert(0, Patch(**frame, label="beats all together"))
    figure.legend(handles=handles, loc="outside lower right", ncols=2)
    return figure


def audit_accuracy_figure(data: xr.Dataset) -> Figure:
    """The accuracy of every head against that of its null draws, the clearest head first.

    Dots have their 95 % intervals; bands hold all null draws, dark where 90 % of them lie. Marks
    are the accuracies of a uniform choice, of rules without the query, and of a fixed offset.

    Args:
        data: The arrays of an audit.
    """
    tested = [one for one in by_clearness(heads(data)) if one["accuracy"] is not None]
    figure = Figure(figsize=(float(np.clip(3.0 + 0.16 * len(tested), 4.6, WIDE)), 3.7))
    axes = figure.subplots()
    places = np.arange(len(tested))
    draws = _draws(data, tested)
    wide = float(np.clip(420 / max(len(tested), 1), 1, 9))
    for low, high, share in _BANDS:
        bottom, top = np.quantile(draws, (low, high), axis=1)
        look: Any = {"color": _shade(share), "linewidth": wide, "capstyle": "butt"}
        axes.vlines(places, bottom, top, zorder=1, **look)
    marks = {"chance": "_", "accuracy_query_free": "x", "accuracy_offset": "+"}
    colors = {"chance": "black", "accuracy_query_free": "purple", "accuracy_offset": "green"}
    for variable, marker in marks.items():
        heights = [np.nan if one.get(variable) is None else one[variable] for one in tested]
        axes.plot(
            places, heights, marker, color=COLORS[colors[variable]], zorder=2, alpha=0.9,
            markersize=min(4.0, wide + 1), markeredgewidth=0.9,
        )  # fmt: skip
    size = min(5.0, wide + 1)
    for place, one in enumerate(tested):
        look = {"color": COLORS["blue"], "zorder": 3}
        if one.get("accuracy_low") is not None and one.get("accuracy_high") is not None:
            axes.vlines(place, one["accuracy_low"], one["accuracy_high"], linewidth=0.9, **look)
        inside = COLORS["blue"] if one["learnable"] in BEATS_NULLS else "white"
        axes.plot(
            place, one["accuracy"], "o", markersize=size, markerfacecolor=inside,
            markeredgewidth=0.8, **look,
        )  # fmt: skip
    axes.set(xlim=(-0.8, len(tested) - 0.2), ylim=(0, 1.02), ylabel="accuracy on other documents")
    axes.grid(axis="x", visible=False)
    if len(tested) <= _NAMED:
        size = 7 if len(tested) <= 40 else 5.5
        axes.set_xticks(places, [name(one) for one in tested], rotation=90, fontsize=size)
        axes.set_xlabel("layer.head, from the clearest to the least clear")
    else:
        axes.set_xlabel("heads, from the clearest to the least clear")
    share = 100 * data.attrs["alpha"]
    handles = [
        _dot(COLORS["blue"], f"beats the draws of all heads together, {share:.3g} %"),
        _dot("white", "does not"),
        *_bands_explained(),
        Line2D([], [], linestyle="", marker="_", color=COLORS["black"], label="chance"),
        Line2D([], [], linestyle="", marker="x", color=COLORS["purple"], label="without the query"),
        Line2D([], [], linestyle="", marker="+", color=COLORS["green"], label="a fixed offset"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4 if len(tested) > 24 else 2)
    return figure


def audit_curves_figure(curves: xr.Dataset) -> Figure:
    """Accuracies of learned rules against the number of documents learned from, a panel a head.

    Bands hold all null draws, dark where 90 % of them lie; lines are the accuracies of a uniform
    choice, of a rule without the query, and of a fixed offset.

    Args:
        curves: What ``learning_curves`` returns.
    """
    count = curves.sizes["curve"]
    tall = -(-count // _ACROSS)
    across = -(-count // tall)
    figure = Figure(figsize=(max(4.6, 0.5 + (WIDE - 0.5) * across / _ACROSS), 0.9 + 1.85 * tall))
    panels = list(figure.subplots(tall, across, sharey=True, squeeze=False).flat)
    for place, axes in enumerate(panels[:count]):
        one = curves.isel(curve=place)
        _curve(axes, one)
        heading = f"{int(one['layer'])}.{int(one['head'])}  {one['learnable'].item()}"
        axes.set_title(heading, fontsize=8)
        if place % across == 0:
            axes.set_ylabel("accuracy", fontsize=8)
        if place + across >= count:
            axes.set_xlabel("documents to learn from", fontsize=8)
    for axes in panels[count:]:
        axes.set_visible(False)
    handles = [
        Line2D([], [], color=COLORS["blue"], marker="o", markersize=4, label="the head"),
        *_bands_explained(),
        *(
            Line2D([], [], color=COLORS[color], linestyle=style, label=label)
            for color, style, label in _SIMPLER.values()
        ),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=6 if across > 3 else 3)
    return figure


def _curve(axes: Axes, curve: xr.Dataset) -> None:
    """One head's accuracies over the number of documents."""
    documents = curve["documents"].to_numpy()
    draws = curve["accuracy_null"].transpose("size", "draw").to_numpy()
    for low, high, share in _BANDS:
        bottom, top = np.quantile(draws, (low, high), axis=1)
        axes.fill_between(documents, bottom, top, color=_shade(share), linewidth=0, zorder=1)
    for variable, (color, style, _) in _SIMPLER.items():
        heights = curve[variable].to_numpy()
        axes.plot(documents, heights, linestyle=style, color=COLORS[color], linewidth=1, zorder=2)
    accuracy, low, high = (
        curve[name].to_numpy() for name in ("accuracy", "accuracy_low", "accuracy_high")
    )
    axes.vlines(documents, low, high, color=COLORS["blue"], linewidth=0.9, zorder=3)
    axes.plot(documents, accuracy, "o-", color=COLORS["blue"], markersize=3.5, zorder=4)
    axes.set(xscale="log", ylim=(0, 1.02))
    axes.set_xticks(documents, [str(number) for number in documents])
    axes.minorticks_off()


def _bands_explained() -> list[Patch]:
    (_, _, all_of_them), (_, _, most) = _BANDS
    return [
        Patch(facecolor=_shade(most), label="its own null draws, 90 % of them"),
        Patch(facecolor=_shade(all_of_them), label="all of them"),
    ]


def margin_control_figure(control: xr.Dataset) -> Figure:
    """Margin ratios of heads of known place, a row for each way in which they were made.

    Args:
        control: What ``positive_control`` returned.
    """
    arms = control["arm"].to_numpy().tolist()
    figure = Figure(figsize=(WIDE * 0.8, 1.2 + 0.42 * len(arms)))
    axes = figure.subplots()
    spread = np.linspace(-0.11, 0.11, control.sizes["control_head"])
    looks = (("blue", "o", -0.13), ("orange", "D", 0.13))
    for norm, (color, marker, above) in zip(control["norm"].to_numpy(), looks, strict=True):
        for place, arm in enumerate(arms):
            ratios = control["margin_ratio"].sel(arm=arm, norm=norm).to_numpy()
            label = f"{norm.capitalize()} norm" if place == 0 else None
            axes.plot(
                ratios, place + above + spread, marker, color=COLORS[color], markersize=4,
                alpha=0.75, markeredgewidth=0, label=label,
            )  # fmt: skip
    axes.axvline(ARRIVED, color=COLORS["black"], linewidth=0.9, linestyle=(0, (4, 3)))
    found = control["right"] == control["expected"]
    for place, count in enumerate(found.sum("control_head").to_numpy()):
        text = f"{int(count)} of {control.sizes['control_head']} found"
        axes.text(1.045, place, text, va="center", fontsize=8)
    axes.set_yticks(range(len(arms)), arms)
    axes.set(xlim=(-0.03, 1.03), ylim=(len(arms) - 0.5, -0.5))
    axes.set_xlabel("margin over that of the certified margin solution")
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _cell(row: int, column: int, **look: Any) -> Rectangle:
    return Rectangle((column - 0.5, row - 0.5), 1, 1, **look)


def framed(row: int, column: int, *, narrow: bool) -> Rectangle:
    """The frame of a cell that is beyond the draws of all heads."""
    inset = 0.06
    return Rectangle(
        (column - 0.5 + inset, row - 0.5 + inset), 1 - 2 * inset, 1 - 2 * inset, fill=False,
        edgecolor=COLORS["orange"], linewidth=1.2 if narrow else 1.8, zorder=3,
    )  # fmt: skip


def _write(
    axes: Axes, row: int, column: int, one: dict[str, Any], shade: float, side: float
) -> None:
    """Writes accuracy and selection into a cell, as far as there is room."""
    if side < _ROOM_FOR_NUMBERS:
        return
    color = "white" if np.isfinite(shade) and shade > 0.4 else COLORS["black"]
    accuracy = one["accuracy"]
    number = "-" if accuracy is None else f"{accuracy:.2f}".replace("0.", ".", 1)
    number = "1" if number == "1.00" else number
    words = side > _ROOM_FOR_WORDS
    axes.text(
        column, row - 0.14 * words, number, ha="center", va="center", color=color,
        fontsize=9 if words else 7.5, zorder=4,
    )  # fmt: skip
    if words:
        axes.text(
            column, row + 0.26, one["selection"], ha="center", va="center", color=color,
            fontsize=6.5, zorder=4,
        )  # fmt: skip


def name_axes(axes: Axes, data: xr.Dataset, tall: float) -> None:
    """Numbers layers and heads beside their cells, which are some inches tall."""
    for axis, dimension, room in ((axes.xaxis, "head", 0.2), (axes.yaxis, "layer", tall)):
        numbers = data[dimension].to_numpy()
        step = 1 if room > 0.16 and len(numbers) <= 24 else 4
        shown = range(0, len(numbers), step)
        axis.set_ticks(list(shown), [str(numbers[place]) for place in shown])
        axis.set_tick_params(length=0)
        axis.set_label_text(dimension)
    axes.xaxis.set_label_position("top")
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    axes.set_xticks(np.arange(-0.5, data.sizes["head"]), minor=True)
    axes.set_yticks(np.arange(-0.5, data.sizes["layer"]), minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5 if tall > 0.25 else 0.6)
    axes.tick_params(which="minor", length=0)
    axes.set_axisbelow(False)
    axes.spines[:].set_visible(False)


def _draws(data: xr.Dataset, tested: list[dict[str, Any]]) -> np.ndarray:
    if not tested:
        return np.zeros((0, 1))
    draws = of_verdict(data, "accuracy_null").transpose("layer", "head", "draw")
    found = [draws.sel(layer=one["layer"], head=one["head"]).to_numpy() for one in tested]
    return np.array(found)


def _shade(paleness: float) -> str:
    return tint(COLORS["gray"], paleness)


def _dot(inside: str, label: str) -> Line2D:
    look: Any = {"linestyle": "", "marker": "o", "color": COLORS["blue"]}
    return Line2D([], [], markerfacecolor=inside, label=label, **look)


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
