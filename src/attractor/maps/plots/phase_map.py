"""Averages of a sweep: heat maps with contours and intervals, and lines with bands."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from attractor.maps.sweeps.grid import is_more_even
from attractor.plots.bands import write_in_middle
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE, SERIES
from attractor.plots.design.roles import ordered_line_styles
from attractor.support.checks import check_choice
from attractor.support.errors import InvalidInputError

_NEEDED = ("mean", "low", "high", "measured", "trials")
_HALVES = ("half", "half_low", "half_high")
_NOTE: dict[str, Any] = {"fontsize": 7, "color": "#555555"}
_LETTERS = 18
"""Letters of a note in an inch."""
_HATCHED: dict[str, Any] = {
    "hatch": "//////", "edgecolor": COLORS["gray"], "linewidth": 0.0,
    "cmap": "Greys", "vmin": 1.9, "vmax": 2.0,
}  # fmt: skip
"""Cells without a value: white below the lines."""
_PROBABILITIES = (0.1, 0.5, 0.9)
_COLUMNS = 5
"""Most panels beside each other."""
_TICKS = 8
_ACROSS = 10
"""Cells beside each other that numbers can be written into."""
_LINES = 8
_MEASURE = "measure"
"""The axis of several measures, whose names say what they are."""
_LOOKS = (*SERIES, *({"color": COLORS[c], "linestyle": d} for c, d in (
    ("sky", "-"), ("yellow", "--"), ("black", "-."), ("gray", ":"),
)))  # fmt: skip


def phase_map_figure(
    data: xr.Dataset,
    x: str,
    y: str,
    *,
    panels: str | None = None,
    levels: Sequence[float] | None = None,
) -> Figure:
    """A heat map of the mean over two axes, and one of the width of its interval.

    Contours go through the centers of cells, where both axes have numbers; where one has names the
    numbers are written into the cells. Points of which nothing was measured are hatched, and those
    of which some trials are missing have a dot.

    Args:
        data: What ``attractor.maps.sweeps.average_trials`` returns.
        x: The axis to the right.
        y: The axis upward.
        panels: An axis with a panel for each value; None where there is none.
        levels: Where to draw contours; default: 0.1, 0.5 and 0.9 of probabilities, and three round
            numbers of others. None are drawn for an empty list.

    Raises:
        InvalidInputError: If the data are none of these, or have other axes.
    """
    _check(data, x=x, y=y, panels=panels)
    parts = _parts(data, panels)
    scales = _scale(data[x].values), _scale(data[y].values)
    if "names" in (scales[0].kind, scales[1].kind):  # a table, with room for its numbers
        scales = _in_places(scales[0]), _in_places(scales[1])
    blocks = math.ceil(len(parts) / _COLUMNS)
    columns = math.ceil(len(parts) / blocks)
    width = (data["high"] - data["low"]).values
    limits = _limits(data["mean"].values, data.attrs["kind"])
    widest = float(np.nanmax(width)) if np.isfinite(width).any() else 1.0
    looks = (
        ("viridis", limits, _colors_of(data)),
        (
            "Greys",
            (0.0, widest or 1.0),
            f"width of the {100 * data.attrs['confidence']:g} % interval",
        ),
    )
    height = 2.5 if panels is None else 1.75
    figure = Figure(figsize=(PAGE, 0.5 + height * (2 * blocks if panels else 1)))
    grid = (2 * blocks, columns) if panels else (1, 2)
    every = figure.subplots(*grid, sharex=bool(panels), sharey=True, squeeze=False)
    for row, (cmap, (least, most), label) in enumerate(looks):
        own = every[row * blocks : (row + 1) * blocks] if panels else every[:, row : row + 1]
        image = None
        for axes, (name, part) in zip(own.ravel(), parts, strict=False):
            part = part.assign(width=part["high"] - part["low"])
            shown_in = part["width" if row else "mean"].transpose(y, x).values
            norm = Normalize(least, most)
            image = _cells(
                axes,
                shown_in,
                scales,
                norm,
                cmap,
                written=not row and columns * data.sizes[x] <= _ACROSS,
            )
            _mark_missing(axes, part.transpose(y, x, ...), scales, dots=not row)
            if not row:
                _contours(axes, part["mean"].transpose(y, x).values, scales, levels, data)
                axes.set_title(name)
        for axes in own.ravel()[len(parts) :]:
            axes.set_axis_off()
        assert image is not None
        bar = figure.colorbar(image, ax=own, pad=0.02, aspect=24)
        bar.set_label("\n".join(textwrap.wrap(label, 22 * blocks if panels else 36)))
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    for axes in _lowest(every) if panels else every.ravel():
        axes.set_xlabel(_words(x))
    for axes in every[:, 0]:
        axes.set_ylabel(_words(y))
    figure.supxlabel(_note(data, figure, hatched=True), **_NOTE)
    return figure


def phase_lines_figure(
    data: xr.Dataset,
    x: str,
    *,
    lines: str | None = None,
    panels: str | None = None,
    transitions: xr.Dataset | None = None,
) -> Figure:
    """Lines of the mean along one axis, each with its interval as a band.

    Points of which some trials are missing are drawn hollow; those of which all are have none.
    Places along an axis lie on its scale, and arrows at its ends stand for those beyond.
    Half-way points are diamonds at one half, with a bar for their interval.

    Args:
        data: What ``average_trials`` or ``crossings`` of ``attractor.maps.sweeps`` returns.
        x: The axis to the right.
        lines: An axis with a line for each value; None where there is none.
        panels: An axis with a panel for each value; None where there is none.
        transitions: What ``transition`` of ``attractor.maps.sweeps`` makes of the data along
            ``x``; or None.

    Raises:
        InvalidInputError: If the data are none of these, have other axes, or more values than
            lines that can be told apart; or transitions are not of them.
    """
    _check(data, x=x, lines=lines, panels=panels)
    if transitions is not None:
        others = {name for name in (lines, panels) if name is not None}
        if "half" not in transitions or set(transitions["half"].dims) != others:
            raise InvalidInputError(
                "transitions", "they are not those of the lines drawn", f"Take them along {x}"
            )
        data = data.assign({name: transitions[name] for name in _HALVES})
    parts, scale = _parts(data, panels), _scale(data[x].values)
    rows = math.ceil(len(parts) / (_COLUMNS - 2))
    columns = math.ceil(len(parts) / rows)
    width = PAGE if panels else 0.6 * PAGE + 1.2 * bool(lines)
    figure = Figure(figsize=(width, 0.5 + (2.6 if panels is None else 2.0) * rows))
    every = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    named = _scale(data[lines].values) if lines else None
    upward = _scale(np.asarray(data.attrs["places"])) if data.attrs["kind"] == "place" else None
    for axes, (name, part) in zip(every.ravel(), parts, strict=False):
        _set_axis(axes, scale, "x")
        if upward is not None:
            _set_axis(axes, upward, "y")
            axes.set_ylim(upward.edges[0], upward.edges[-1])
        for place, look in enumerate(_looks(named)):
            one = part if named is None else part.isel({lines: int(named.order[place])})
            label = None if named is None else named.labels[place]
            _line(axes, one.isel({x: scale.order}), scale, look, label, upward)
            if transitions is not None and scale.kind != "names":
                _half_way(axes, one, look["color"])
        if not np.isfinite(part["mean"].values).any():
            write_in_middle(axes, "nothing was measured")
        axes.set_title(name)
    for axes in every.ravel()[len(parts) :]:
        axes.set_axis_off()
    for axes in _lowest(every):
        axes.set_xlabel(_words(x))
    for axes in every[:, 0]:
        axes.set_ylabel("\n".join(textwrap.wrap(_colors_of(data), 28 if panels else 40)))
        if data.attrs["kind"] == "probability":
            axes.set_ylim(-0.03, 1.03)
    if lines:
        handles, labels = every[0, 0].get_legend_handles_labels()
        title: Any = {"title": _words(lines), "title_fontsize": 7, "alignment": "left"}
        figure.legend(handles, labels, loc="outside right upper", **title)
    figure.supxlabel(_note(data, figure, hatched=False), **_NOTE)
    return figure


def _lowest(panels: np.ndarray) -> list[Axes]:
    """The lowest panel of each column that is not empty, whose ticks are labeled."""
    found = [next(axes for axes in column[::-1] if axes.axison) for column in panels.T]
    for axes in found:
        axes.tick_params(axis="x", labelbottom=True)
    return found


class _Scale(NamedTuple):
    """How the values of an axis lie along it.

    Attributes:
        kind: ``"linear"``, ``"log"``, or ``"names"``, one place after another.
        order: The values in the order in which they lie.
        centers: Their places.
        edges: Borders of the cells around them.
        labels: The values as they are written.
    """

    kind: str
    order: np.ndarray
    centers: Float[np.ndarray, "value"]
    edges: Float[np.ndarray, "edge"]
    labels: list[str]


def _scale(values: np.ndarray) -> _Scale:
    """Even places for names; for numbers the scale on which they lie more evenly.

    Numbers below one, such as momenta, may lie by the logarithm of their distance from it.
    """
    if values.dtype.kind not in "iuf" or len(values) == 1:
        places = np.arange(len(values), dtype=float)
        labels = _labels(values)
        return _Scale(
            "names", np.arange(len(values)), places, np.append(places, len(values)) - 0.5, labels
        )
    order = np.argsort(values, kind="stable")
    numbers = values[order].astype(float)
    labels = _labels(numbers)
    logarithmic = numbers[0] > 0 and is_more_even(np.log(numbers), numbers)
    turned = np.log(numbers) if logarithmic else numbers
    if len(numbers) > 2 and 0 <= numbers[0] and numbers[-1] < 1:
        from_one = -np.log1p(-numbers)
        if is_more_even(from_one, turned):
            return _Scale("linear", order, from_one, _edges(from_one), labels)
    edges = _edges(turned)
    kind = "log" if logarithmic else "linear"
    return _Scale(kind, order, numbers, np.exp(edges) if logarithmic else edges, labels)


def _edges(places: Float[np.ndarray, "value"]) -> Float[np.ndarray, "edge"]:
    """Borders half-way between places, and as far beyond the ends."""
    middle = (places[1:] + places[:-1]) / 2
    ends = 2 * places[[0, -1]] - middle[[0, -1]]
    return np.concatenate([ends[:1], middle, ends[1:]])


def _labels(values: np.ndarray) -> list[str]:
    """The values of an axis as they are written: numbers in as few digits as tell them apart."""
    if values.dtype.kind not in "iuf":
        return [str(value).replace("_", " ") for value in values.tolist()]
    short = [f"{value:.3g}" if value < 1000 else f"{value:g}" for value in values.tolist()]
    return (
        short if len(set(short)) == len(short) else [f"{value:.12g}" for value in values.tolist()]
    )


def _in_places(scale: _Scale) -> _Scale:
    """The same values one place after another."""
    places = np.arange(len(scale.order), dtype=float)
    return _Scale("names", scale.order, places, np.append(places, len(places)) - 0.5, scale.labels)


def _short(value: float) -> str:
    """A number in few characters, for a cell."""
    return f"{value:.2f}" if 0.005 < abs(value) < 10 else f"{value:.2g}"


def _set_axis(axes: Axes, scale: _Scale, which: str) -> None:
    """Scale, ticks at values, as many as can be read, and their labels."""
    axis = getattr(axes, f"{which}axis")
    if scale.kind == "log":
        getattr(axes, f"set_{which}scale")("log")
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    every = range(len(scale.labels))
    if scale.kind != "names" and len(every) > _TICKS:
        decades = [k for k in every if scale.labels[k].strip("0.") in ("1", "")]
        step = math.ceil(len(every) / _TICKS)
        many = scale.kind == "log" and 3 <= len(decades) <= _TICKS
        every = decades if many else every[::step]
    places, labels = scale.centers[list(every)], [scale.labels[k] for k in every]
    long = scale.kind == "names" and which == "x" and max(map(len, labels)) * len(labels) > 40
    turned: Any = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if long else {}
    axis.set_ticks(places, labels, **turned)


def _cells(
    axes: Axes,
    values: Float[np.ndarray, "y x"],
    scales: tuple[_Scale, _Scale],
    norm: Normalize,
    cmap: str,
    *,
    written: bool,
) -> QuadMesh:
    """Draws a cell for every point, and its number where axes have names."""
    across, up = scales
    ordered = values[np.ix_(up.order, across.order)]
    masked = np.ma.masked_invalid(ordered)
    _set_axis(axes, across, "x")
    _set_axis(axes, up, "y")
    image = axes.pcolormesh(across.edges, up.edges, masked, norm=norm, cmap=cmap, rasterized=True)
    axes.set(xlim=across.edges[[0, -1]], ylim=up.edges[[0, -1]])
    axes.grid(False)
    names = "names" in (across.kind, up.kind)
    if written and names:
        for (row, column), value in np.ndenumerate(ordered):
            if np.isfinite(value):
                color = "white" if norm(value) < 0.6 else COLORS["black"]
                place = (float(across.centers[column]), float(up.centers[row]))
                axes.text(*place, _short(value), ha="center", va="center", color=color, fontsize=6)
    return image


def _mark_missing(
    axes: Axes, part: xr.Dataset, scales: tuple[_Scale, _Scale], *, dots: bool
) -> None:
    """Hatches points of which nothing was measured, and dots those of which some is missing."""
    across, up = scales
    measured, trials = (
        part[name].values[np.ix_(up.order, across.order)] for name in ("measured", "trials")
    )
    none = measured == 0
    if none.any():
        empty = np.ma.masked_where(~none, none)
        axes.pcolor(across.edges, up.edges, empty, zorder=0.9, **_HATCHED)
    if dots:
        rows, columns = np.nonzero((measured < trials) & ~none)
        look: dict[str, Any] = {"s": 9, "color": COLORS["orange"], "edgecolor": "white"}
        axes.scatter(across.centers[columns], up.centers[rows], linewidth=0.5, zorder=4, **look)


def _contours(
    axes: Axes,
    values: Float[np.ndarray, "y x"],
    scales: tuple[_Scale, _Scale],
    levels: Sequence[float] | None,
    data: xr.Dataset,
) -> None:
    """Draws contours with their numbers, where both axes have several numbers."""
    across, up = scales
    if "names" in (across.kind, up.kind) or not np.isfinite(values).any():
        return
    chosen = sorted(levels if levels is not None else _default_levels(data))
    least, most = np.nanmin(values), np.nanmax(values)
    inside = [float(level) for level in chosen if least < level < most]
    if not inside:
        return
    ordered = np.ma.masked_invalid(values[np.ix_(up.order, across.order)])
    lines = axes.contour(
        across.centers, up.centers, ordered, levels=inside, colors="white", linewidths=1.1
    )
    halo: Any = [patheffects.withStroke(linewidth=2.2, foreground="#222222", alpha=0.55)]
    lines.set_path_effects(halo)
    for text in axes.clabel(lines, fmt=lambda level: f"{level:g}", fontsize=6, inline_spacing=3):
        text.set_path_effects([patheffects.withStroke(linewidth=1.6, foreground="#222222")])


def _default_levels(data: xr.Dataset) -> Sequence[float]:
    if data.attrs["kind"] == "probability":
        return _PROBABILITIES
    known = data["mean"].values[np.isfinite(data["mean"].values)]
    return list(MaxNLocator(4).tick_values(known.min(), known.max())[1:-1])


def _line(
    axes: Axes,
    one: xr.Dataset,
    scale: _Scale,
    look: Any,
    label: str | None,
    upward: _Scale | None = None,
) -> None:
    """Draws one line with its band, over names points with bars; arrows beyond a scale."""
    mean, low, high = (one[name].values for name in ("mean", "low", "high"))
    color = look["color"]
    if upward is not None:
        ends = upward.centers[0], upward.centers[-1]
        for end, beyond, arrow in zip(ends, (-np.inf, np.inf), "v^", strict=True):
            there = scale.centers[mean == beyond]
            axes.plot(there, np.full(len(there), end), arrow, color=color, markersize=7, zorder=4)
        mean, low, high = (np.clip(one, *ends) for one in (mean, low, high))
    if scale.kind == "names":
        bars = np.abs(np.nan_to_num(np.stack([mean - low, high - mean])))
        axes.errorbar(
            scale.centers, mean, bars, fmt=look["marker"], color=color, label=label, capsize=2.5
        )
        return
    partly = one["measured"].values < one["trials"].values
    points: dict[str, Any] = {"markersize": 3.6, "markeredgecolor": color, "markeredgewidth": 0.8}
    axes.plot(scale.centers, mean, label=label, **(points | look))
    hollow: Any = points | {"linestyle": "none", "marker": look["marker"], "color": color}
    axes.plot(
        scale.centers[partly], mean[partly], **(hollow | {"markerfacecolor": "white"}), zorder=3
    )
    axes.fill_between(scale.centers, low, high, color=color, alpha=0.18, linewidth=0)


def _half_way(axes: Axes, one: xr.Dataset, color: Any) -> None:
    """Marks where a line passes one half, within the axis, with its interval."""
    limits = axes.get_xlim()
    half, low, high = (float(one[name]) for name in _HALVES)
    if np.isfinite(half):
        axes.plot(np.clip([low, high], *limits), [0.5, 0.5], color=color, linewidth=1.6, zorder=4)
        axes.plot([half], [0.5], "D", color=color, markersize=4, markeredgecolor="white", zorder=5)
        axes.set_xlim(limits)


def _looks(named: _Scale | None) -> list[dict[str, Any]]:
    """A look for each line: shades in order for numbers, colors and dashes for names."""
    if named is None:
        return [dict(SERIES[0], marker="o")]
    count = len(named.labels)
    if named.kind != "names":
        return [dict(look, linestyle="-") for look in ordered_line_styles(count)]
    return [dict(look, marker=mark) for look, mark in zip(_LOOKS[:count], "os^DvPX<", strict=False)]


def _parts(data: xr.Dataset, panels: str | None) -> list[tuple[str, xr.Dataset]]:
    """The data of each panel with its title."""
    if panels is None:
        return [("", data)]
    scale = _scale(data[panels].values)
    titles = [
        label if panels == _MEASURE else f"{_words(panels)} = {label}" for label in scale.labels
    ]
    return [
        (title, data.isel({panels: int(place)}))
        for title, place in zip(titles, scale.order, strict=True)
    ]


def _check(data: xr.Dataset, **axes: str | None) -> None:
    missing = [name for name in _NEEDED if name not in data]
    if missing or "kind" not in data.attrs:
        raise InvalidInputError(
            "data", f"it has no {', '.join(missing) or 'kind'}", "Give what average_trials returns"
        )
    dims = [str(name) for name in data["mean"].dims]
    named = {role: name for role, name in axes.items() if name is not None}
    for role, name in named.items():
        check_choice(role, name, dims)
    if len(set(named.values())) < len(named) or set(dims) - set(named.values()):
        raise InvalidInputError(
            "data",
            f"its axes are {', '.join(dims)}, and {', '.join(map(str, named.values()))} are drawn",
            "Average with exactly the axes to draw, each of them once",
        )
    lines = named.get("lines")
    if lines is not None and data.sizes[lines] > _LINES and data[lines].dtype.kind not in "iuf":
        raise InvalidInputError(
            "lines", f"{lines} has {data.sizes[lines]} names", f"Give an axis of at most {_LINES}"
        )


def _limits(values: np.ndarray, kind: str) -> tuple[float, float]:
    if kind == "probability":
        return 0.0, 1.0
    known = values[np.isfinite(values)]
    if not known.size or known.min() == known.max():
        middle = float(known[0]) if known.size else 0.0
        return middle - 0.5, middle + 0.5
    return float(known.min()), float(known.max())


def _words(name: str) -> str:
    """The name of an axis as it is written at it."""
    return f"${name}$" if len(name) == 1 else name.replace("_", " ")


def _colors_of(data: xr.Dataset) -> str:
    """What is averaged, in words."""
    described = str(data.attrs["description"])
    if data.attrs["kind"] == "place":
        return described.replace("_", " ")
    if _MEASURE in data.dims:
        return data.attrs["kind"] if data.attrs["kind"] == "probability" else "mean"
    if data.attrs["kind"] == "probability" and described.startswith("whether "):
        return f"probability that {described.removeprefix('whether ')}"
    return f"mean {_words(str(data.attrs['of']))}"


def _note(data: xr.Dataset, figure: Figure, *, hatched: bool) -> str:
    """Over what is averaged, which intervals they are, and what is missing, as wide as a figure."""
    attrs = data.attrs
    seeds = "" if attrs["seeds"] == 1 else f" and {attrs['seeds']:,} seeds of each"
    sets = "data set" if attrs["instances"] == 1 else "data sets"
    text = f"over {attrs['instances']:,} {sets}{seeds}; "
    text += f"{100 * attrs['confidence']:g} % intervals ({attrs['interval']})"
    if attrs["at"]:
        text += f"; at {attrs['at'].replace('_', ' ')}"
    if attrs["kind"] == "place" and np.isinf(data["mean"]).any():
        text += "; arrows: beyond what was measured"
    total, measured = int(data["trials"].sum()), int(data["measured"].sum())
    if measured == total:
        return _wrapped(f"{text}; no trial is missing", figure)
    marks = "dots; hatched where all are" if hatched else "hollow; left out where all are"
    missing = f"{total - measured:,} of {total:,} trials are missing ({marks})"
    return f"{_wrapped(text, figure)}\n{_wrapped(missing, figure)}"


def _wrapped(text: str, figure: Figure) -> str:
    return "\n".join(textwrap.wrap(text, int(_LETTERS * figure.get_figwidth())))
