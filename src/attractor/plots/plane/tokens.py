"""The frame of a two-dimensional picture of training, and the tokens in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, MultipleLocator

from attractor.plots.design.look import COLORS
from attractor.plots.design.roles import SEQUENCES
from attractor.support.errors import InvalidInputError
from attractor.support.precision import check_shape

HALO = [patheffects.withStroke(linewidth=2.2, foreground="white")]
"""Keeps text readable where it lies over lines."""

_AWAY = 0.03
"""How far from its token a name stands, of the width of the frame."""
_STAR = {"marker": "*", "markersize": 10}


def frame(
    axes: Axes,
    *points: Float[Any, "... 2"],
    ratio: float | None = None,
    margin: float = 0.06,
    equal: bool = True,
) -> None:
    """Sets limits that hold every point given and the origin, with thin lines through the origin.

    Rays and separating lines reach to these limits, whether drawn before or after.

    Args:
        axes: Where to draw.
        *points: What has to be seen.
        ratio: Height of the frame over its width; that of the points if None. Panels beside each
            other are of one size with the same ratio.
        margin: Space around the points, relative to the larger side.
        equal: Whether a unit is as long on both axes, which right angles need.

    Raises:
        InvalidInputError: If there is no point other than the origin.
    """
    seen = np.concatenate(
        [np.zeros((1, 2)), *(in_plane(p, "points").reshape(-1, 2) for p in points)]
    )
    seen = seen[np.isfinite(seen).all(1)]
    low, high = seen.min(0), seen.max(0)
    if not (high > low).any():
        raise InvalidInputError("points", "there is none but the origin", "Give points to be seen")
    if equal:
        spans = (high - low) + 2 * margin * (high - low).max()
        if ratio is not None:
            spans = np.maximum(spans, [spans[1] / ratio, spans[0] * ratio])
        axes.set_aspect("equal", adjustable="box")
        _same_ticks(axes, spans.max())
    else:
        spans = (1 + 2 * margin) * np.where(high > low, high - low, 1.0)
        axes.set_box_aspect(ratio)
    middle, half = (low + high) / 2, spans / 2
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    axes.grid(False)
    for draw in (axes.axhline, axes.axvline):
        draw(0, color="#dddddd", linewidth=0.6, zorder=0)


def plane_tokens(
    axes: Axes,
    keys: Float[Any, "sequence token 2"],
    *,
    optimal: Int[Any, "sequence"] | Bool[Any, "sequence token"] | None = None,
    selected: Int[Any, "sequence"] | Bool[Any, "sequence token"] | None = None,
    mask: Bool[Any, "sequence token"] | None = None,
    labels: Sequence[str] | None = None,
    names: Sequence[Sequence[str]] | None = None,
    beside: Float[Any, "ray 2"] = (),
) -> None:
    """Draws tokens as points, a color and marker for each sequence, and optimal ones as stars.

    Args:
        axes: Where to draw.
        keys: Tokens.
        optimal: Which are optimal: one for each sequence, or a mask.
        selected: Which get a ring, likewise.
        mask: False where a token is padding.
        labels: What the legend calls each sequence.
        names: What is written beside each token, on the side away from the origin.
        beside: Points on rays from the origin that names keep away from, once there are limits.

    Raises:
        InvalidInputError: If labels or names are not as many as sequences and tokens.
    """
    keys = in_plane(keys, "keys")
    shape = keys.shape[:2]
    if labels is not None:
        check_shape("labels", (len(labels),), shape[:1])
    if names is not None:
        check_shape("names", (len(names),), shape[:1])
        for row in names:
            check_shape("names", (len(row),), shape[1:])
    shown = np.ones(shape, bool) if mask is None else np.asarray(mask, bool)
    stars, rings = (_chosen(which, shape) & shown for which in (optimal, selected))
    for i, points in enumerate(keys):
        color, marker = SEQUENCES[i % len(SEQUENCES)]
        fill: Any = {"color": color, "markeredgecolor": "white", "markeredgewidth": 0.6}
        fill |= {"linestyle": "none", "zorder": 5}
        label = labels[i] if labels is not None else None
        if (plain := shown[i] & ~stars[i]).any():
            axes.plot(*points[plain].T, marker=marker, markersize=5, label=label, **fill)
            label = None
        if stars[i].any():
            axes.plot(*points[stars[i]].T, label=label, **_STAR, **fill)
        if rings[i].any():
            ring: Any = {"fillstyle": "none", "markersize": 11.5, "zorder": 5}
            axes.plot(*points[rings[i]].T, "o", color=color, **ring)
        if names is not None:
            for point, name in zip(points[shown[i]], np.asarray(names[i])[shown[i]], strict=True):
                _write_beside(axes, point, str(name), color, np.reshape(beside, (-1, 2)))


def optimal_token_handle() -> Line2D:
    """The entry of a legend for stars."""
    look: Any = {"linestyle": "none", "color": COLORS["gray"], "markeredgecolor": "white"}
    return Line2D([], [], label="optimal token", **look, **_STAR)


def in_plane(points: Any, argument: str) -> Float[np.ndarray, "... 2"]:
    """Points of a plane as an array of its own.

    Raises:
        InvalidInputError: Unless each has two numbers.
    """
    points = np.array(points, float)
    if points.ndim == 0 or points.shape[-1] != 2:
        raise InvalidInputError(
            argument, f"its shape is {points.shape}", "Give points of a plane, 2 numbers each"
        )
    return points


def _same_ticks(axes: Axes, longer: float) -> None:
    """Puts few ticks on both axes, as far apart on one as on the other."""
    step = np.diff(MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(0, longer))[0]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(step))


def _chosen(which: Any, shape: tuple[int, int]) -> Bool[np.ndarray, "sequence token"]:
    if which is None:
        return np.zeros(shape, bool)
    which = np.asarray(which)
    if which.dtype == bool:
        return np.broadcast_to(which, shape)
    return which[:, None] == np.arange(shape[1])


def _write_beside(
    axes: Axes, point: np.ndarray, text: str, color: str, rays: Float[np.ndarray, "ray 2"]
) -> None:
    right, up = np.where(point < 0, -1, 1)
    if len(rays):
        sides = [(right, up), (-right, up), (right, -up), (-right, -up)]
        away = _AWAY * np.ptp(axes.get_xlim())
        right, up = max(sides, key=lambda side: _clearance(point + away * np.array(side), rays))
    axes.annotate(
        text,
        (point[0], point[1]),
        (3.5 * right, 3 * up),
        textcoords="offset points",
        ha="left" if right > 0 else "right",
        va="bottom" if up > 0 else "top",
        fontsize=7,
        color=color,
        path_effects=HALO,
        zorder=6,
    )


def _clearance(point: np.ndarray, rays: Float[np.ndarray, "ray 2"]) -> float:
    """The distance from the nearest ray, to two digits, so that the first of equals wins."""
    units = rays / np.linalg.norm(rays, axis=1, keepdims=True)
    along = np.maximum(units @ point, 0)
    distance = np.linalg.norm(point - along[:, None] * units, axis=1).min()
    return float(f"{distance:.2g}")
