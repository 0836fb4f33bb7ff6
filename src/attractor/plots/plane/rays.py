"""Straight lines of a plane from edge to edge: rays to solutions, separating lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from attractor.plots.design.roles import line_style, role_of, shade, tint
from attractor.plots.plane.tokens import HALO, in_plane
from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError


def ray(
    axes: Axes,
    direction: Float[Any, "2"],
    role: str,
    *,
    label: str | None = None,
    name: str = "",
    other_side: bool = False,
    **changes: Any,
) -> Line2D:
    """Draws the ray from the origin along a direction to the edge of the frame, pale and wide.

    Args:
        axes: Where to draw.
        direction: Such as the solution ``p`` or ``W z_i``.
        role: What it is; see ``role_of``.
        label: Name in the legend.
        name: Written at its end: above a ray that is rather level, to the right of a steep one.
        other_side: Whether to write it below or to the left.
        **changes: Line properties put in place of its own.

    Raises:
        InvalidInputError: If the direction is zero or not finite.
    """
    direction = _direction(direction, "direction")
    own = role_of(role)
    pale: Any = {"linewidth": 2.6, "dash_capstyle": "butt", "solid_capstyle": "butt", "zorder": 1.8}
    pale |= {"color": tint(own.color), "linestyle": _short_dash(own.dash)}
    line = Line2D([], [], label=label, **(pale | changes))
    text = _name_at_end(axes, direction, name, shade(own.color), other_side)

    def reach() -> None:
        ends = _inside(axes, np.zeros(2), direction, first=0)
        line.set_data(*ends.T)
        text.set_visible(bool(name and len(ends)))
        if len(ends):
            text.xy = tuple(0.02 * ends[0] + 0.98 * ends[1])

    return _follow_frame(axes, line, reach)


def separating_line(
    axes: Axes,
    normal: Float[Any, "2"],
    through: Float[Any, "2"],
    role: str,
    *,
    label: str | None = None,
    **changes: Any,
) -> Line2D:
    """Draws the line through a point orthogonal to a direction, thin, from edge to edge.

    Args:
        axes: Where to draw.
        normal: The direction, such as ``W z_i``.
        through: The point, such as that of ``mid_margin_point``.
        role: Whose line it is; see ``role_of``.
        label: Name in the legend.
        **changes: Line properties put in place of its own.

    Raises:
        InvalidInputError: If the direction is zero or not finite.
    """
    normal, through = _direction(normal, "normal"), in_plane(through, "through")
    line = Line2D([], [], label=label, **(line_style(role, linewidth=0.8, zorder=1.9) | changes))
    along = np.array([-normal[1], normal[0]])
    return _follow_frame(axes, line, lambda: line.set_data(*_inside(axes, through, along).T))


def mid_margin_point(
    keys: Float[Any, "token 2"], direction: Float[Any, "2"], selected: int
) -> Float[np.ndarray, "2"]:
    """The point halfway between a token and that which comes nearest to it along a direction.

    Args:
        keys: The tokens of one sequence, two at least.
        direction: Tokens are compared by their inner product with it.
        selected: The token to be separated from the rest.

    Raises:
        InvalidInputError: If the direction is zero or not finite, or there is no such token.
    """
    keys = in_plane(keys, "keys")
    check_count("selected", selected, least=0, most=len(keys) - 1)
    scores = keys @ _direction(direction, "direction")
    scores[selected] = -np.inf
    return (keys[selected] + keys[int(scores.argmax())]) / 2


def _short_dash(dash: Any) -> Any:
    """Dashes grow with the width of a line; those of a wide one would outgrow its legend."""
    if isinstance(dash, str):
        return dash
    begin, lengths = dash
    return begin, tuple(0.55 * length for length in lengths)


def _direction(direction: Any, argument: str) -> Float[np.ndarray, "2"]:
    direction = in_plane(direction, argument)
    size = np.abs(direction).max()
    if direction.shape != (2,) or not np.isfinite(size) or size == 0:
        raise InvalidInputError(
            argument, f"it is {direction}", "Give one direction that is finite and not zero"
        )
    return direction / size


def _inside(
    axes: Axes, point: np.ndarray, direction: np.ndarray, *, first: float = -np.inf
) -> Float[np.ndarray, "ends 2"]:
    """Both ends of what the frame shows of ``point + t direction``, t >= first; or nothing."""
    last = np.inf
    bounds = (axes.get_xbound(), axes.get_ybound())
    for x, slope, (least, most) in zip(point, direction, bounds, strict=True):
        if slope == 0:
            if not least <= x <= most:
                return np.empty((0, 2))
            continue
        near, far = sorted(((least - x) / slope, (most - x) / slope))
        first, last = max(first, near), min(last, far)
    if first >= last:
        return np.empty((0, 2))
    return point + np.array([[first], [last]]) * direction


def _follow_frame(axes: Axes, line: Line2D, fit: Callable[[], None]) -> Line2D:
    """Fits a line to the frame now and whenever it changes; it has no say in the limits."""
    axes.add_artist(line)
    fit()
    for change in ("xlim_changed", "ylim_changed"):
        axes.callbacks.connect(change, lambda _: fit())
    return line


def _name_at_end(
    axes: Axes, direction: np.ndarray, name: str, color: str, other_side: bool
) -> Annotation:
    level = abs(direction[0]) >= abs(direction[1])
    side = -1 if other_side else 1
    if level:
        place, across = (0, 3 * side), "top" if other_side else "bottom"
        along = "right" if direction[0] > 0 else "left"
    else:
        place, across = (4 * side, 0), "top" if direction[1] > 0 else "bottom"
        along = "right" if other_side else "left"
    words: Any = {"color": color, "path_effects": HALO, "fontsize": 7, "zorder": 6}
    return axes.annotate(
        name, (0, 0), place, textcoords="offset points", ha=along, va=across, **words
    )
