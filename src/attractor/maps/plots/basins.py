"""Basins of attraction: the selection that each point of a plane reaches, and shares of starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter
from scipy.ndimage import gaussian_filter

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.roles import SEQUENCES, role_of, tint
from attractor.plots.plane import optimal_token_handle, plane_tokens, ray

_GLOBAL = COLORS["blue"]
_OTHERS = tuple(COLORS[name] for name in ("orange", "green", "yellow", "purple"))
_REST = COLORS["gray"]
_PALE, _DARK = 0.5, 0.62
"""Regions are mixed with white and rays with black."""
_HATCH: dict[str, Any] = {
    "facecolor": tint(role_of("not_settled").color, 0.5),
    "edgecolor": COLORS["gray"],
    "hatch": "//////",
    "linewidth": 0.0,
}
_FINE = 400
"""Points along the longer side of the plane, between which boundaries are drawn."""
_ROUND = 1.0
"""Cells over which boundaries are rounded off."""
_BARS = 10
"""Selections with a bar of their own; the others share one."""


def selection_colors(*studies: xr.Dataset) -> dict[str, str]:
    """A color for each selection, the same wherever it is drawn.

    Blue is the globally optimal one. The others that most starts reach have a color each, in the
    order of their norms; those beyond share gray.

    Args:
        *studies: Data of maps and of shares that are drawn together.
    """
    norms: dict[str, float] = {}
    counts: dict[str, int] = {}
    best: set[str] = set()
    for data in studies:
        names = [str(name) for name in data["selection"].values]
        optimal = _flag(data, "globally_optimal")
        for place, name in enumerate(names):
            norms[name] = float(f"{float(data['solution_norm'][place]):.9g}")
            counts[name] = counts.get(name, 0) + int((data["basin"].values == place).sum())
            best |= {name} if optimal[place] else set()
    frequent = sorted(norms.keys() - best, key=lambda name: (-counts[name], name))
    shown = sorted(frequent[: len(_OTHERS)], key=lambda name: (norms[name], name))
    colors = dict.fromkeys(norms, _REST) | dict.fromkeys(best, _GLOBAL)
    return colors | dict(zip(shown, _OTHERS, strict=False))


def basin_map_axes(
    axes: Axes, data: xr.Dataset, *, colors: Mapping[str, str] | None = None
) -> None:
    """Draws the selection that each start of a plane settles on, those that do not hatched.

    Boundaries are curves through the cells of the grid; the center of each cell is a start. Where
    the plane is that of a prompt, tokens lie on it, the best ones as stars; where margin
    solutions lie in the plane, rays point along them.

    Args:
        axes: Where to draw.
        data: ``BasinMap.data``.
        colors: A color for each selection; default: ``selection_colors(data)``.
    """
    colors = selection_colors(data) if colors is None else colors
    edges = [_edges(data[name].values) for name in ("first", "second")]
    basin = data["basin"].transpose("second", "first").values
    (left, right), (low, high) = (one[[0, -1]].tolist() for one in edges)
    extent = (left, right, low, high)
    names = [str(name) for name in data["selection"].values]
    _draw_regions(axes, basin, extent, [colors[name] for name in names])
    axes.grid(False)
    axes.set(xlim=extent[:2], ylim=extent[2:])
    directions = data["direction"].values.reshape(2, -1)
    if np.allclose(directions @ directions.T, np.eye(2) * (directions[0] @ directions[0])):
        axes.set_aspect("equal")
    handles: list[Any] = _legend(data, colors)
    labels = [str(handle.get_label()) for handle in handles]
    rays = _draw_rays(axes, data, directions, colors)
    if rays:
        handles.append(tuple(rays))
        labels.append("margin solution of each")
    if _is_prompt_plane(data, directions):
        more = _draw_tokens(axes, data, [np.array(line.get_xydata())[-1] for line in rays])
        handles += more
        labels += [str(handle.get_label()) for handle in more]
        axes.set(xlabel="$p_1$ at the start", ylabel="$p_2$ at the start")
    else:
        first, second = _axis_names(data, directions)
        axes.set(xlabel=first, ylabel=second)
    axes.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0,
        handler_map={tuple: HandlerTuple(None, pad=0.3)},
    )  # fmt: skip


def _basin_shares_axes(
    axes: Axes, data: xr.Dataset, *, colors: Mapping[str, str] | None = None
) -> None:
    """Draws the share of starts that settle on each selection, with its interval.

    Args:
        axes: Where to draw.
        data: ``BasinShares.data``.
        colors: A color for each selection; default: ``selection_colors(data)``.
    """
    colors = selection_colors(data) if colors is None else colors
    count = data["count"].values
    order = np.argsort(-count[:-1], kind="stable")
    shown, rest = order[:_BARS], order[_BARS:]
    names = data["selection"].values
    bars: list[tuple[int, str, dict[str, Any]]] = [
        (place, _name(data, place), {"color": tint(colors[str(names[place])], 0.15)})
        for place in shown.tolist()
    ]
    if count[-1]:
        bars.append((len(count) - 1, "not settled", _HATCH))
    labels = [label for _, label, _ in bars]
    for row, (place, _, look) in enumerate(bars):
        share, low, high = (float(data[name][place]) for name in ("share", "low", "high"))
        axes.barh(row, share, height=0.62, **look)
        axes.errorbar(
            share, row, xerr=[[share - low], [high - share]], color=COLORS["black"],
            elinewidth=1.1, capsize=2.5, capthick=1.1,
        )  # fmt: skip
        axes.annotate(
            f"{100 * share:.1f} %", (high, row), (5, 0), textcoords="offset points",
            va="center", fontsize=7,
        )  # fmt: skip
    if len(rest):
        share = count[rest].sum() / data.sizes["start"]
        axes.barh(len(bars), share, height=0.62, color=tint(_REST, 0.15))
        labels.append(f"{len(rest)} other selections")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, min(1.12, 1.18 * float(data["high"].values.max()) + 0.02))
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_xlabel(f"share of {data.sizes['start']:,} starts")
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def basin_map_figure(data: xr.Dataset, *, colors: Mapping[str, str] | None = None) -> Figure:
    """The map of a plane.

    Args:
        data: ``BasinMap.data``.
        colors: A color for each selection.
    """
    figure = Figure(figsize=(PAGE, 4.0), layout="compressed")
    basin_map_axes(figure.subplots(), data, colors=colors)
    note = f"{data.attrs['optimizer']} from the center of every cell"
    figure.supxlabel(note, fontsize=7, color="#555555")
    return figure


def basin_shares_figure(data: xr.Dataset, *, colors: Mapping[str, str] | None = None) -> Figure:
    """The shares of random starts.

    Args:
        data: ``BasinShares.data``.
        colors: A color for each selection.
    """
    bars = min(data.sizes["selection"], _BARS) + 2
    figure = Figure(figsize=(PAGE, 0.9 + 0.3 * bars))
    axes = figure.subplots()
    _basin_shares_axes(axes, data, colors=colors)
    confidence = f"{100 * data.attrs['confidence']:g}"
    note = f"{data.attrs['optimizer']}; lines: {confidence} % {data.attrs['interval']} intervals"
    figure.supxlabel(note, fontsize=7, color="#555555")
    return figure


def _legend(data: xr.Dataset, colors: Mapping[str, str]) -> list[Patch]:
    """A patch for each selection with a color of its own, with the part of the plane it takes."""
    basin = data["basin"].values
    names = [str(name) for name in data["selection"].values]
    shares = [float((basin == place).mean()) for place in range(len(names))]
    own = [place for place, name in enumerate(names) if colors[name] != _REST]
    own.sort(key=lambda place: -shares[place])
    handles = [
        Patch(
            facecolor=tint(colors[names[place]], _PALE),
            label=f"{_name(data, place)}: {100 * shares[place]:.1f} %",
        )
        for place in own
    ]
    rest = [place for place in range(len(names)) if place not in own]
    if rest:
        total = 100 * sum(shares[place] for place in rest)
        label = f"{len(rest)} other selections: {total:.1f} %"
        handles.append(Patch(facecolor=tint(_REST, _PALE), label=label))
    left = float((basin < 0).mean())
    if left:
        handles.append(Patch(label=f"not settled: {100 * left:.1f} %", **_HATCH))
    return handles


def _name(data: xr.Dataset, place: int) -> str:
    """The tokens of a selection, and whether they are optimal."""
    words = _tokens(data, place)
    for flag in ("globally_optimal", "locally_optimal"):
        if _flag(data, flag)[place]:
            return f"{words}, {flag.replace('_', ' ')}"
    return words


def _tokens(data: xr.Dataset, place: int) -> str:
    name = str(data["selection"].values[place])
    return f"token{'s' if ',' in name else ''} {name if len(name) <= 24 else name[:22] + '...'}"


def _flag(data: xr.Dataset, name: str) -> np.ndarray:
    if name in data:
        return data[name].values.astype(bool)
    return np.zeros(data.sizes["selection"], dtype=bool)


def _draw_regions(
    axes: Axes,
    basin: Int[np.ndarray, "second first"],
    extent: tuple[float, float, float, float],
    colors: Sequence[str],
) -> None:
    """Colors the cells by their selections, with the corners of cells rounded off.

    What is less than a cell wide and would vanish by that, stays a cell.
    """
    fine = max(2, _FINE // max(basin.shape))
    cells = np.kron(basin, np.ones((fine, fine), dtype=basin.dtype))
    kinds = np.unique(basin).tolist()
    weights = np.array(
        [gaussian_filter((cells == kind).astype(np.float32), _ROUND * fine, mode="nearest")
         for kind in kinds]
    )  # fmt: skip
    smooth = np.array(kinds)[weights.argmax(0)]
    blocks = (smooth == cells).reshape(basin.shape[0], fine, basin.shape[1], fine)
    lost = ~blocks.any(axis=(1, 3))
    smooth = np.where(np.kron(lost, np.ones((fine, fine), dtype=bool)), cells, smooth)
    fills = [to_rgb(tint(color, _PALE)) for color in colors]
    image = np.array([*fills, to_rgb(_HATCH["facecolor"])])[smooth]
    axes.imshow(image, origin="lower", extent=extent, zorder=0, aspect="auto")
    places = [
        np.linspace(low, high, 2 * count + 1)[1::2]
        for low, high, count in zip(extent[::2], extent[1::2], smooth.shape[::-1], strict=True)
    ]
    if (smooth < 0).any():
        hatched: dict[str, Any] = {"colors": "none", "hatches": [_HATCH["hatch"]], "zorder": 0.5}
        axes.contourf(*places, smooth < 0, levels=[0.5, 1.5], **hatched)
    for kind, weight in zip(kinds, weights, strict=True):
        others = np.delete(weights, kinds.index(kind), axis=0)
        if kind >= 0 and len(others):
            ahead = weight - others.max(0)
            edge: dict[str, Any] = {"colors": tint(colors[int(kind)], 0.1), "linewidths": 0.6}
            axes.contour(*places, ahead, levels=[0], zorder=0.6, **edge)


def _axis_names(data: xr.Dataset, directions: Float[np.ndarray, "2 entry"]) -> tuple[str, str]:
    """What the directions of a plane are: along a margin solution, or the rest of another one."""
    solutions = data["solution"].values.reshape(data.sizes["selection"], -1)
    along = [place for place, one in enumerate(solutions) if _aligned(one, directions[0])]
    first = f"start along the margin solution of\n{_tokens(data, along[0])}" if along else ""
    rest = solutions - np.outer(solutions @ directions[0], directions[0]) / (
        directions[0] @ directions[0]
    )
    across = [
        place
        for place, one in enumerate(rest)
        if place not in along and _aligned(one, directions[1])
    ]
    second = f"start along what is left of that of\n{_tokens(data, across[0])}" if across else ""
    return first or "start along the first direction", second or "start along the second direction"


def _aligned(one: Float[np.ndarray, "entry"], direction: Float[np.ndarray, "entry"]) -> bool:
    return bool(one @ direction >= (1 - 1e-9) * np.linalg.norm(one) * np.linalg.norm(direction) > 0)


def _draw_rays(
    axes: Axes, data: xr.Dataset, directions: Float[np.ndarray, "2 entry"], colors: Any
) -> list[Line2D]:
    """A ray along each margin solution that lies in a plane through zero."""
    drawn: list[Line2D] = []
    if data["center"].values.any():
        return drawn
    for place, name in enumerate(data["selection"].values):
        solution = data["solution"].values[place].ravel()
        inside = np.linalg.lstsq(directions.T, solution)[0]
        if np.linalg.norm(inside @ directions - solution) <= 1e-9 * np.linalg.norm(solution):
            dark = tuple(_DARK * np.array(to_rgb(colors[str(name)])))
            style: Any = {"color": dark, "linestyle": "-", "linewidth": 1.5, "zorder": 3}
            drawn.append(ray(axes, inside, "globally_optimal", **style))
    return drawn


def _draw_tokens(axes: Axes, data: xr.Dataset, rays: Sequence[Any]) -> list[Any]:
    """The tokens with their numbers beside rays; returns what the legend says of them."""
    sequences = data.sizes["sequence"]
    plane_tokens(
        axes,
        data["keys"].values,
        optimal=data["optimal"].values if "optimal" in data else None,
        mask=data["mask"].values,
        names=[[str(token) for token in range(data.sizes["key_token"])]] * sequences,
        beside=np.reshape(rays, (-1, 2)),
    )
    handles: list[Any] = [
        Line2D([], [], linestyle="none", color=color, marker=marker, markersize=5, label=label)
        for (color, marker), label in zip(
            SEQUENCES, [f"tokens of sequence {i}" for i in range(sequences)], strict=False
        )
    ]
    handles = handles if sequences > 1 else []
    return [*handles, optimal_token_handle()] if "optimal" in data else handles


def _is_prompt_plane(data: xr.Dataset, directions: Float[np.ndarray, "2 entry"]) -> bool:
    if "keys" not in data or data["center"].values.any():
        return False
    return directions.shape == (2, 2) and bool((directions == np.eye(2)).all())


def _edges(centers: Float[np.ndarray, "cell"]) -> Float[np.ndarray, "edge"]:
    """The borders of cells of equal width."""
    half = (centers[1] - centers[0]) / 2 if len(centers) > 1 else 0.5
    return np.append(centers - half, centers[-1] + half)
