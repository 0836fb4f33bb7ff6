"""A corpus at a glance: classes of tokens, what assumptions cost, and where training goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from attractor.corpora import AssumptionCheck, PartialOrders, TokenClass
from attractor.corpora.plots.collocation import short, text_width
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE, panels_on_page
from attractor.plots.design.roles import ROLES, line_style
from attractor.results import axis_of

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


_SHOWN = 1e-17
"""Smaller distances are rounding, and have no place on the axis."""


def two_stage_figure(data: xr.Dataset) -> Figure:
    """Both layers on their way to their directions, their losses, and the attention kept.

    Args:
        data: What ``measure_two_stages`` returns; its first instance is drawn.
    """
    one = data.isel(instance=0)
    figure, (distance, loss, attention) = panels_on_page(2.3, 1, 3)
    stages = (("feed_forward_", "feed_forward_step"), ("", "step"))
    for (prefix, along), role in zip(stages, ("feed_forward", "attention"), strict=True):
        steps = one[along].values
        style: Any = line_style(role)
        _curve(distance, steps, one[f"{prefix}distance"].values, **style)
        _curve(loss, steps, one[f"{prefix}loss"].values, label=_LABELS[role], **style)
    least = one["least_optimal_attention"].values
    attention.plot(one["step"].values, least, **line_style("attention"))
    attention.set_xscale("symlog", linthresh=1)
    attention.set_ylim(-0.03, 1.05)
    distance.set_title("1 \N{MINUS SIGN} cosine to the solution")
    loss.set_title("loss")
    attention.set_title("attention on optimal\ntokens, least of all samples")
    for axes in (distance, loss, attention):
        axes.set_xlabel("iteration of the stage")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def limits_figure(data: xr.Dataset) -> Figure:
    """Attention on its way to a direction and to a finite part, and the loss to its floor.

    Args:
        data: What ``measure_limits`` returns; its first trial is drawn.
    """
    one = data.isel(instance=0, seed=0)
    along = axis_of(one)
    steps = one[along].values
    figure, (distance, finite, loss) = panels_on_page(2.3, 1, 3)
    _curve(distance, steps, 1 - one["correlation"].values, label="whole matrix",
           **line_style("as_published"))  # fmt: skip
    _curve(distance, steps, 1 - one["correlation_outside"].values, label="without cyclic part",
           **line_style("attention"))  # fmt: skip
    distance.set_title("1 \N{MINUS SIGN} cosine to the direction")
    distance.legend()
    finite.plot(steps, one["cyclic_norm"].values, label="its norm", **line_style("as_published"))
    finite.plot(
        steps, one["finite_distance"].values, label="distance from the\npredicted finite part",
        **line_style("attention"),
    )  # fmt: skip
    finite.set_xscale("symlog", linthresh=1)
    finite.set_ylim(0, 1.5 * finite.get_ylim()[1])
    finite.set_title("part in the cyclic subspace")
    finite.legend(loc="upper center")
    _curve(loss, steps, np.exp(one["log_excess"].values), **line_style("attention"))
    loss.set_title("loss above its floor")
    for axes in (distance, finite, loss):
        axes.set_xlabel("iteration")
    return figure


_LABELS = {"feed_forward": "feed-forward layer (first stage)", "attention": "attention (second)"}


def _curve(axes: Axes, steps: np.ndarray, values: np.ndarray, **style: Any) -> None:
    """A curve on logarithmic axes; values too small for them are left out."""
    shown = (steps > 0) & (values > _SHOWN)
    axes.loglog(steps[shown], values[shown], **style)
