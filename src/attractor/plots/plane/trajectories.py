"""Paths of training in a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import PolyCollection
from matplotlib.transforms import IdentityTransform

from attractor.plots.design.roles import line_style
from attractor.plots.plane.tokens import in_plane
from attractor.support.errors import InvalidInputError

_LENGTH, _HALF_WIDTH = 5.0, 2.0
"""Size of an arrowhead, in points."""
_NOTCH = 0.3
"""Depth of the cut in its back, relative to its length."""


def trajectory(
    axes: Axes,
    path: Float[Any, "*starts step 2"],
    role: str,
    *,
    steps: Int[Any, "step"] | None = None,
    arrows: int | Sequence[int] | None = None,
    label: str | None = None,
    start: bool = True,
    **changes: Any,
) -> None:
    """Draws paths with their starts marked and arrowheads at given steps.

    Args:
        axes: Where to draw.
        path: One path, or one for each of several starts.
        role: What is trained; see ``role_of``.
        steps: The step of each point; 0, 1, 2, ... if None.
        arrows: An arrowhead every so many steps, or at the steps given. Between two points its
            tip is on the line between them; where the frame would cut it, it is left out.
        label: Name in the legend.
        start: Whether to mark starts.
        **changes: Line properties put in place of its own.

    Raises:
        InvalidInputError: If steps do not fit the path.
    """
    paths = in_plane(path, "path")
    paths = paths.reshape(-1, *paths.shape[-2:])
    steps = np.arange(paths.shape[1]) if steps is None else np.asarray(steps)
    tips = np.interp(steps_with_arrows(steps, arrows, paths.shape[1]), steps, np.arange(len(steps)))
    style = line_style(role, linewidth=1.2 if len(paths) == 1 else 0.9, zorder=3) | changes
    for i, points in enumerate(paths):
        axes.plot(*points.T, label=label if i == 0 else None, **style)
        axes.add_artist(Arrowheads(axes, points, tips, style))
    if start:
        ring: Any = {"markerfacecolor": "white", "markeredgecolor": style["color"]}
        axes.plot(*paths[:, 0].T, "o", markersize=3.6, markeredgewidth=0.9, zorder=4, **ring)


class Arrowheads(PolyCollection):
    """Arrowheads on a polyline, turned as it is turned on paper.

    Their sides are found when they are drawn, as only then the scale of the axes is known. One
    that the frame would cut, or that the curve is too short for, is left out.
    """

    def __init__(
        self,
        axes: Axes,
        points: Float[np.ndarray, "point 2"],
        places: Float[np.ndarray, "arrow"],
        style: Mapping[str, Any],
    ) -> None:
        """Heads with their tips at places on a curve.

        Args:
            axes: Where the curve is drawn.
            points: The curve.
            places: Where the tips are, as fractional positions in ``points``.
            style: Line properties of the curve.
        """
        super().__init__([], facecolor=style["color"], edgecolor="none", zorder=style["zorder"])
        self._points, self._places, self._curve_axes = points, places, axes
        self.set_transform(IdentityTransform())
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Draws them where the curve now lies."""
        pixel: Any = renderer.points_to_pixels(1.0)
        self.set_verts(self._heads(pixel))
        super().draw(renderer)

    def _heads(self, pixel: float) -> list[np.ndarray]:
        """The corners of every head that is whole, in pixels."""
        curve = self._curve_axes.transData.transform(self._points)
        frame = self._curve_axes.bbox
        heads = []
        for place in self._places:
            head = _head(curve, place, pixel)
            if head is not None and all(frame.contains(x, y) for x, y in head):
                heads.append(head)
        return heads


def steps_with_arrows(
    steps: np.ndarray, arrows: int | Sequence[int] | None, points: int
) -> Float[np.ndarray, "arrow"]:
    """The steps at which arrowheads are drawn.

    Args:
        steps: The step of each point of the path.
        arrows: Every so many steps, or at these steps.
        points: How many points the path has.

    Raises:
        InvalidInputError: If steps do not increase or do not fit the path, or arrows lie beyond it.
    """
    if steps.shape != (points,) or (np.diff(steps) <= 0).any():
        raise InvalidInputError(
            "steps", "they do not fit the path", f"Give {points} increasing numbers"
        )
    if arrows is None:
        return np.empty(0)
    if np.ndim(arrows) == 0:
        every = int(arrows)  # pyright: ignore[reportArgumentType]
        if every < 1:
            raise InvalidInputError("arrows", f"it is {every}", "Give 1 or more steps")
        return np.arange(steps[0] + every, steps[-1] + 1, every, dtype=float)
    wanted = np.asarray(arrows, float)
    if wanted.size and not (steps[0] <= wanted.min() and wanted.max() <= steps[-1]):
        raise InvalidInputError(
            "arrows", "some lie beyond the path", f"Give steps from {steps[0]} to {steps[-1]}"
        )
    return wanted


def _head(
    curve: Float[np.ndarray, "point 2"], place: float, pixel: float
) -> Float[np.ndarray, "corner 2"] | None:
    """A head with its tip at a place, pointing away from where the curve was a length before."""
    whole = int(place)
    rest = place - whole
    tip = curve[whole] if rest == 0 else (1 - rest) * curve[whole] + rest * curve[whole + 1]
    before = curve[: whole + 1] if rest else curve[:whole]
    away = np.hypot(*(before - tip).T)
    far = np.flatnonzero(away >= _LENGTH * pixel)
    # Also false where a point is not known; a curve that has hardly moved has no direction.
    if not away.max(initial=0) >= 0.2 * pixel:
        return None
    tail = before[far[-1]] if far.size else before[0]
    along = (tip - tail) / np.hypot(*(tip - tail)) * pixel
    across = np.array([-along[1], along[0]]) * _HALF_WIDTH
    back = tip - _LENGTH * along
    return np.array([tip, back + across, back + _NOTCH * _LENGTH * along, back - across])
