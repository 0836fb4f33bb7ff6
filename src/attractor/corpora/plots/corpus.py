"""A corpus at a glance: the class of every token under every query, and what assumptions cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from attractor.corpora import AssumptionCheck, PartialOrders, TokenClass
from attractor.corpora.plots.layers import short, text_width
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.roles import ROLES

MOST_TOKENS = 40
"""The largest vocabulary whose names can be read along both axes."""

_CLASSES = {
    TokenClass.OPTIMAL: "optimal",
    TokenClass.CONFUSED: "confused",
    TokenClass.NON_OPTIMAL: "non_optimal",
    TokenClass.NON_COMPARABLE: "non_comparable",
}


def class_map(axes: Axes, orders: PartialOrders) -> None:
    """Draws the class of every token under every query, a row for each query.

    Args:
        axes: Where to draw.
        orders: The orders, of a vocabulary of at most ``MOST_TOKENS``.
    """
    codes = {kind.value: number for number, kind in enumerate(_CLASSES)}
    table = np.vectorize(codes.__getitem__)(orders.class_table())
    colors = ListedColormap([ROLES[role].color for role in _CLASSES.values()])
    axes.imshow(table, cmap=colors, vmin=-0.5, vmax=len(codes) - 0.5, aspect="equal")
    for query, token in np.argwhere(table == codes[TokenClass.CONFUSED.value]):
        axes.plot(token, query, "x", color="white", markersize=3.5, markeredgewidth=1.1)
    places = range(orders.size)
    names = [short(name) for name in orders.vocabulary]
    rotation = 0 if max(map(len, names)) < 3 else 90
    axes.set_xticks(places, names, rotation=rotation, parse_math=False)
    axes.set_yticks(places, names, parse_math=False)
    axes.set_xticks(np.arange(orders.size + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(orders.size + 1) - 0.5, minor=True)
    axes.tick_params(which="both", length=0, labelsize=6.5)
    axes.grid(False)
    axes.grid(True, which="minor", color="white", linewidth=0.8)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="token", ylabel="query")


def class_map_figure(orders: PartialOrders) -> Figure:
    """The class of every token under every query, with what the colors mean.

    Args:
        orders: The orders, of a vocabulary of at most ``MOST_TOKENS``.
    """
    side = 0.135 * orders.size
    labels = max(text_width(short(name)) for name in orders.vocabulary)
    width = max(side + labels + 0.5, 2.6)
    figure = Figure(figsize=(min(width, PAGE), side + labels + 1.0))
    class_map(figure.subplots(), orders)
    legend: Any = [
        Patch(color=ROLES[role].color, label=ROLES[role].label) for role in _CLASSES.values()
    ]
    columns = 4 if width > 3.6 else 2
    figure.legend(handles=legend, loc="outside lower center", ncols=columns)
    return figure


def _assumption_bars(axes: Axes, checks: Sequence[AssumptionCheck]) -> None:
    """Draws the share of samples in the way of each assumption, from the first one down.

    Args:
        axes: Where to draw.
        checks: What was found of each assumption.
    """
    places = np.arange(len(checks))
    shares = np.array([check.share for check in checks])
    axes.barh(places, shares, height=0.62, color=COLORS["blue"])
    for place, check in zip(places, checks, strict=True):
        words = f"{100 * check.share:.3g} %" if not check.met else "met"
        outside = check.share < 0.85
        axes.annotate(
            words, (check.share, place), (3 if outside else -3, 0), textcoords="offset points",
            ha="left" if outside else "right", va="center", fontsize=7,
            color="#555555" if check.met else COLORS["black"] if outside else "white",
        )  # fmt: skip
    axes.set_yticks(places, [check.name for check in checks])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks(np.linspace(0, 1, 6), [f"{share:.0f} %" for share in np.linspace(0, 100, 6)])
    axes.set_xlabel("samples in its way")
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")


def assumptions_figure(checks: Sequence[AssumptionCheck], *, width: float = PAGE) -> Figure:
    """The share of samples in the way of each assumption.

    Args:
        checks: What was found of each assumption.
        width: Of the figure, in inches.
    """
    figure = Figure(figsize=(width, 0.55 + 0.22 * len(checks)))
    _assumption_bars(figure.subplots(), checks)
    return figure
