"""Paths of training in a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from attractor.errors import InvalidInputError
from attractor.plots.plane.arrowheads import Arrowheads, steps_with_arrows
from attractor.plots.plane.tokens import in_plane
from attractor.plots.roles import look


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
    style = look(role, linewidth=1.2 if len(paths) == 1 else 0.9, zorder=3) | changes
    for i, points in enumerate(paths):
        axes.plot(*points.T, label=label if i == 0 else None, **style)
        axes.add_artist(Arrowheads(axes, points, tips, style))
    if start:
        ring: Any = {"markerfacecolor": "white", "markeredgecolor": style["color"]}
        axes.plot(*paths[:, 0].T, "o", markersize=3.6, markeredgewidth=0.9, zorder=4, **ring)


def log_radius(path: Float[Any, "... 2"], unit: float) -> Float[np.ndarray, "... 2"]:
    """Points moved toward the origin, ``r -> unit log(1 + r / unit)``, each in its direction.

    A path whose norm grows a thousandfold fits on the page, and still ends on the ray it tends to.

    Args:
        path: Points.
        unit: Radii much below it stay as they are.

    Raises:
        InvalidInputError: If the unit is not positive.
    """
    path = in_plane(path, "path")
    if not 0 < unit < np.inf:
        raise InvalidInputError("unit", f"it is {unit}", "Give a positive length")
    ratio = np.hypot(path[..., :1], path[..., 1:]) / unit
    known = (ratio > 0) & (ratio < np.inf)
    return path * np.divide(np.log1p(ratio), ratio, out=np.ones_like(ratio), where=known)
