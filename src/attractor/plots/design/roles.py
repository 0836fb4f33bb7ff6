"""The meaning of each color and dash: the same thing looks the same in every figure.

Hue says which geometry, dash which of two curves that a gray copy would confuse. Training and the
solution that it is predicted to reach share a hue; rays to solutions are drawn pale and wide, so
that a path that ends on one stays visible.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

from attractor.geometry import Lp, get_geometry
from attractor.plots.design.look import COLORS
from attractor.support.errors import InvalidInputError

SOLID, DASHED, DOTTED = "-", (0, (4, 1.6)), (0, (1, 1.4))
"""The dashes that curves are told apart by, also in a gray copy."""
SHORT_DASHED, LONG_DASHED = (0, (2, 1.2)), (0, (8, 1.8))
DASH_DOTTED, DASH_DOT_DOTTED = (0, (5, 1.5, 1, 1.5)), (0, (5, 1.5, 1, 1.5, 1, 1.5))
"""Two more of them."""


class Role(NamedTuple):
    """The style of one thing in every figure.

    Attributes:
        color: Its color.
        dash: Its line style.
        marker: Its marker, where it has points.
        label: What legends call it.
    """

    color: str
    dash: Any
    marker: str
    label: str


ROLES = {
    "frobenius": Role(COLORS["blue"], SOLID, "o", "Frobenius solution"),
    "nuclear": Role(COLORS["orange"], DASHED, "s", "nuclear solution"),
    "relaxed": Role(COLORS["orange"], DASH_DOTTED, "v", "relaxed solution"),
    "train_W": Role(COLORS["blue"], SOLID, "o", "training $W$"),
    "train_KQ": Role(COLORS["orange"], DASHED, "s", "training $(K, Q)$"),
    "train_p": Role(COLORS["blue"], SOLID, "o", "training $p$"),
    "train_v": Role(COLORS["green"], DASHED, "^", "training $v$"),
    "globally_optimal": Role(COLORS["blue"], SOLID, "o", "globally optimal"),
    "locally_optimal": Role(COLORS["sky"], DASHED, "s", "locally optimal"),
    "neither": Role(COLORS["yellow"], DOTTED, "X", "not locally optimal"),
    "not_settled": Role("#d9d9d9", DASH_DOTTED, "D", "not settled"),
    "exact": Role(COLORS["blue"], SOLID, "o", "exact"),
    "as_published": Role(COLORS["gray"], DASHED, "s", "as published"),
    "measured": Role(COLORS["blue"], SOLID, "o", "measured"),
    "predicted": Role(COLORS["black"], DASHED, "D", "predicted"),
    "fitted": Role(COLORS["black"], DASH_DOTTED, "v", "fitted"),
    "logistic": Role(COLORS["blue"], SOLID, "o", "logistic loss"),
    "exponential": Role(COLORS["orange"], DASHED, "s", "exponential loss"),
    "linear": Role(COLORS["green"], DASH_DOTTED, "^", "linear loss"),
    "optimal": Role(COLORS["blue"], SOLID, "o", "optimal"),
    "confused": Role(COLORS["orange"], DASHED, "X", "confused"),
    "non_optimal": Role(COLORS["yellow"], DOTTED, "v", "non-optimal"),
    "non_comparable": Role("#e6e6e6", DASH_DOTTED, "D", "non-comparable"),
    "feed_forward": Role(COLORS["green"], DASHED, "^", "feed-forward layer"),
    "attention": Role(COLORS["blue"], SOLID, "o", "attention"),
    "cyclic": Role(COLORS["orange"], SOLID, "o", "relation on a cycle"),
}
"""The look of what figures show; that of an entrywise norm comes from ``role_of("l_3")``."""

SEQUENCES = (
    (COLORS["black"], "o"),
    (COLORS["purple"], "s"),
    (COLORS["yellow"], "^"),
    (COLORS["green"], "D"),
    (COLORS["sky"], "v"),
    (COLORS["gray"], "P"),
)
"""Color and marker of the tokens of each sequence in a plane."""

_EXPONENTS = {1.75: ("orange", DASHED, "s"), 3.0: ("green", DASH_DOTTED, "^")}
_OTHER_EXPONENTS = LinearSegmentedColormap.from_list(
    "exponents", [COLORS["yellow"], COLORS["purple"], COLORS["black"]]
)
_ORDERED = LinearSegmentedColormap.from_list(
    "ordered",
    [
        (0.0, COLORS["yellow"]),
        (0.4, COLORS["green"]),
        (0.7, COLORS["blue"]),
        (1.0, COLORS["black"]),
    ],
)
_ORDERED_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


_PALE = 0.74
"""Brightness of a tint, from 0 to 1."""


def role_of(name: str) -> Role:
    """The look of a thing by its name.

    Args:
        name: A key of ``ROLES``, or the name of an entrywise norm such as ``"l_1.75"``; the norm
            with p = 2 is the Frobenius norm and looks like it.

    Raises:
        InvalidInputError: If nothing of that name has a look.
    """
    if name in ROLES:
        return ROLES[name]
    try:
        geometry = get_geometry(name)
    except InvalidInputError:
        geometry = None
    if geometry is not None and geometry.name in ROLES:
        return ROLES[geometry.name]
    if not isinstance(geometry, Lp):
        known = ", ".join(ROLES)
        raise InvalidInputError(
            "role", f"{name!r} has no look", f"Give one of {known}, or l_p for a number p"
        )
    return _entrywise(geometry.p)


def line_style(name: str, **changes: Any) -> dict[str, Any]:
    """The line properties of a thing, for ``axes.plot``.

    Args:
        name: See ``role_of``.
        **changes: Line properties put in place of its own, or beside them.
    """
    role = role_of(name)
    return {"color": role.color, "linestyle": role.dash} | changes


def tint(color: str, amount: float | None = None) -> str:
    """A color mixed with white.

    Args:
        color: The color.
        amount: How much white, from 0 to 1; None for so much that all colors are about as light.
    """
    if amount is None:
        brightness = float(np.dot(to_rgb(color), (0.299, 0.587, 0.114)))
        amount = (_PALE - brightness) / (1 - brightness) if brightness < _PALE else 0.0
    return _mixed(color, amount, 1.0)


def shade(color: str, amount: float = 0.3) -> str:
    """A color mixed with black, for words: the lighter ones are hard to read on white.

    Args:
        color: The color.
        amount: How much black, from 0 to 1.
    """
    return _mixed(color, amount, 0.0)


def ordered_line_styles(count: int) -> list[dict[str, Any]]:
    """Looks of curves that differ in the value of a parameter: light for small, dark for large.

    They have a color and a marker and no line style, which is left to what else differs.

    Args:
        count: How many values.
    """
    places = np.linspace(0, 0.92, count) if count > 1 else [0.7]
    return [
        {"color": to_hex(_ORDERED(place)), "marker": _ORDERED_MARKERS[i % len(_ORDERED_MARKERS)]}
        for i, place in enumerate(places)
    ]


def _mixed(color: str, amount: float, gray: float) -> str:
    red, green, blue = ((1 - amount) * part + amount * gray for part in to_rgb(color))
    return to_hex((red, green, blue))


def _entrywise(p: float) -> Role:
    label = r"$\ell_{\infty}$ solution" if p == np.inf else rf"$\ell_{{{p:g}}}$ solution"
    if p in _EXPONENTS:
        color, dash, marker = _EXPONENTS[p]
        return Role(COLORS[color], dash, marker, label)
    return Role(to_hex(_OTHER_EXPONENTS(_place(p))), *_dash_and_marker(p), label)


def _place(p: float) -> float:
    """From 0 at p = 1 to 1 at p = inf; dual exponents lie opposite each other."""
    return 1.0 if p == np.inf else 1 - 1 / (1 + (p - 1) ** 1.5)


def _dash_and_marker(p: float) -> tuple[Any, str]:
    if p < 2:
        return (DOTTED, "v") if p < 1.4 else (SHORT_DASHED, "<")
    return (DASH_DOT_DOTTED, "D") if p <= 4 else (LONG_DASHED, "P")
