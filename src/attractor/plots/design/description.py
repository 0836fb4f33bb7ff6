"""What is seen in a figure, read off its axes, for those who cannot see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.patches import Rectangle

_PANELS, _CURVES = 8, 6
"""How many are described; of more it is said how many there are."""


def description(figure: matplotlib.figure.Figure) -> str:
    """Says panel by panel what it shows, and in which numbers.

    Args:
        figure: The figure.
    """
    panels = [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]
    return " ".join(_first(map(_panel, panels), len(panels), _PANELS, "panels"))


def _panel(axes: Axes) -> str:
    titles = (axes.get_title(place) for place in ("left", "center", "right"))
    title = "; ".join(_plain(words) for words in titles if words)
    x, y = _plain(axes.get_xlabel()), _plain(axes.get_ylabel())
    named = f"{y} against {x}" if x and y else x or y
    shown = list(_shown(axes))
    parts = [part for part in (title, named, "; ".join(shown)) if part]
    return f"{': '.join(parts)}." if parts else ""


def _shown(axes: Axes) -> Iterator[str]:
    for image in axes.images:
        values = np.ma.masked_invalid(np.asarray(image.get_array(), float))
        if values.ndim == 2 and values.count():
            yield f"{_times(values.shape)} cells from {values.min():.3g} to {values.max():.3g}"
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    curves = (_course(_plain(str(one.get_label())), one.get_ydata()) for one in lines)
    yield from _first(curves, len(lines), _CURVES, "curves")
    heights = [one.get_height() for one in axes.patches if isinstance(one, Rectangle)]
    if heights:
        yield f"{len(heights)} bars from {min(heights):.3g} to {max(heights):.3g}"
    for points in axes.collections:
        label, heights = str(points.get_label()), np.asarray(points.get_offsets(), float)[:, 1]
        if isinstance(points, PathCollection) and not label.startswith("_") and heights.size:
            some = f"{heights.size} points from {heights.min():.3g} to {heights.max():.3g}"
            yield f"{_plain(label)}: {some}"


def _course(name: str, values: Any) -> str:
    """Where a curve begins and ends."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    if not known.size:
        return name
    first, last = known[0], known[-1]
    way = f"{first:.3g}" if first == last else f"from {first:.3g} to {last:.3g}"
    return f"{name} {way}".strip()


def _first(found: Iterator[str], count: int, most: int, what: str) -> list[str]:
    """The first of them, and how many more there are."""
    some = [one for one, _ in zip(found, range(most), strict=False)]
    return [*some, f"{count - most} more {what}."] if count > most else some


def _times(shape: Sequence[int]) -> str:
    return " by ".join(map(str, shape))


def _plain(words: str) -> str:
    """Words in one line, without the marks of mathematics."""
    marks = words.replace("\\mathbf", "").translate(str.maketrans("", "", "${}\\"))
    return " ".join(marks.split())
