"""The look of each optimizer, and the panels that figures of classifiers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attractor.papers.mirror_descent.classifiers.contest import interval
from attractor.plots.design.look import COLORS
from attractor.plots.design.pairs import shared_legend
from attractor.plots.design.roles import DOTTED

STYLES = {
    "p = 1.1": (COLORS["blue"], "o", "-"),
    "p = 2": (COLORS["orange"], "s", "--"),
    "p = 3": (COLORS["green"], "^", "-."),
    "Adam": (COLORS["purple"], "D", ":"),
    "AdamW": (COLORS["sky"], "v", (0, (5, 1.5, 1, 1.5))),
    "momentum": (COLORS["yellow"], "P", (0, (2, 1.2))),
    "sign": (COLORS["gray"], "X", (0, (8, 1.8))),
    "Muon": (COLORS["black"], "*", (0, (5, 1.5, 1, 1.5, 1, 1.5))),
}
"""Color, marker and dash of each optimizer."""
HISTOGRAMS = ("p = 1.1", "p = 2", "p = 3", "Adam")
"""The optimizers whose weights are drawn one by one; more lines could not be distinguished."""


_UPRIGHT = 5
"""Names of optimizers that fit below a panel side by side."""


def by_optimizer(
    axes: Axes, values: xr.DataArray, *, shift: float = 0.0, hollow: bool = False
) -> None:
    """Every seed as a small point, the mean with its interval as a large one, by optimizer.

    Args:
        axes: Where to draw.
        values: Over ``optimizer`` and ``seed``.
        shift: How far to the right of the optimizer's place.
        hollow: Whether markers are empty.
    """
    names = values["optimizer"].values.tolist()
    for place, name in enumerate(names):
        color, marker, _ = STYLES[name]
        seeds = values.sel(optimizer=name).values
        mean, half = interval(seeds)
        inside = "white" if hollow else color
        axes.plot(np.full(len(seeds), place + shift - 0.11), seeds, ".", color=color, alpha=0.5,
                  markersize=3)  # fmt: skip
        axes.errorbar(place + shift + 0.05, mean, half, fmt=marker, color=color, capsize=2,
                      markerfacecolor=inside, markersize=5, linewidth=1)  # fmt: skip
    turned: Any = {"rotation": 35, "ha": "right"} if len(names) > _UPRIGHT else {}
    axes.set_xticks(range(len(names)), names, **turned)
    axes.set_xlim(-0.6, len(names) - 0.4)


def by_model(axes: Axes, values: xr.DataArray) -> None:
    """Means with their intervals side by side, by model.

    Args:
        axes: Where to draw.
        values: Over ``model``, ``optimizer`` and ``seed``.
    """
    names, models = values["optimizer"].values.tolist(), values["model"].values.tolist()
    for number, name in enumerate(names):
        color, marker, _ = STYLES[name]
        shift = 0.14 * (number - (len(names) - 1) / 2)
        known = [interval(values.sel(model=model, optimizer=name).values) for model in models]
        means, halves = np.transpose(known)
        places = np.arange(len(models)) + shift
        axes.errorbar(places, means, halves, fmt=marker, color=color, capsize=2, markersize=5,
                      linewidth=1)  # fmt: skip
    axes.set_xticks(range(len(models)), models)
    axes.set_xlim(-0.6, len(models) - 0.4)


def legend_of_optimizers(
    figure: Figure, names: Iterable[str], further: Mapping[str, bool] | None = None
) -> None:
    """Draws a legend of the color, the marker and the dash of optimizers, below a figure.

    Args:
        figure: The figure.
        names: The optimizers.
        further: What filled and hollow markers are, and which of them are hollow.
    """
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle=dash, label=name)
        for name, (color, marker, dash) in STYLES.items()
        if name in names
    ]
    for label, hollow in (further or {}).items():
        gray = COLORS["gray"]
        inside = "white" if hollow else gray
        handles.append(
            Line2D(
                [], [], color=gray, marker="o", markerfacecolor=inside, linestyle="", label=label
            )
        )
    shared_legend(figure, [], handles=handles)


def in_words(values: xr.DataArray, form: str = ".3f") -> str:
    """Means with their intervals in words, by optimizer."""
    words = []
    for name in values["optimizer"].values.tolist():
        mean, half = interval(values.sel(optimizer=name).values)
        words.append(f"{name} {mean:{form}} +- {half:{form}}")
    return ", ".join(words)


def rates_panel(axes: Axes, data: xr.Dataset) -> None:
    """Draws accuracy against the rates tried: a ring around the one chosen, a cross if diverged."""
    axes.set(xscale="log", xlabel="learning rate", title="search for learning rates")
    axes.set_ylabel("validation accuracy")
    for name in data["optimizer"].values.tolist():
        one, (color, marker, dash) = data.sel(optimizer=name), STYLES[name]
        # A huge loss, which breaks ties in the search, puts some tries far below zero.
        tried = one["tried_accuracy"].clip(min=0)
        axes.plot(one["tried_rate"], tried, color=color, linestyle=dash, marker=marker,
                  markersize=3, linewidth=0.9)  # fmt: skip
        best = one["tried_accuracy"].where(one["tried_rate"] == one["learning_rate"]).max()
        axes.plot(one["learning_rate"], best, "o", markersize=9, markerfacecolor="none",
                  markeredgecolor=color)  # fmt: skip
        diverged = one["tried_rate"].where(one["tried_accuracy"].isnull())
        axes.plot(
            diverged, np.full(diverged.shape, data.attrs["chance"]), "x", color=color, markersize=5
        )
    axes.axhline(data.attrs["chance"], color=COLORS["gray"], linewidth=0.8, linestyle=DOTTED)


def epochs_panel(axes: Axes, data: xr.Dataset) -> None:
    """Validation accuracy by epoch, mean over seeds while all of them train."""
    axes.set(xlabel="epoch, while every seed trains", title="as training goes on")
    for name in data["optimizer"].values.tolist():
        color, _, dash = STYLES[name]
        curve = data["validation_accuracy"].sel(optimizer=name)
        whole = curve.notnull().all("seed")
        axes.plot(data["epoch"].where(whole), curve.mean("seed").where(whole), color=color,
                  linestyle=dash)  # fmt: skip
    axes.axhline(data.attrs["chance"], color=COLORS["gray"], linewidth=0.8, linestyle=DOTTED)


def weights_panel(axes: Axes, data: xr.Dataset, matrix: str) -> None:
    """Magnitudes of the entries of a matrix, all blocks, mean over seeds, of few optimizers."""
    axes.set(yscale="log", xlabel="magnitude of a weight", title=matrix)
    last = float(data["bin"][-1])
    for name in (name for name in data["optimizer"].values.tolist() if name in HISTOGRAMS):
        color, marker, dash = STYLES[name]
        share = data["share_of_weights"].sel(optimizer=name, matrix=matrix).mean("seed")
        share = share.where(share > 0)
        axes.step(data["bin"][:-1], share[:-1], where="post", color=color, linestyle=dash,
                  linewidth=1)  # fmt: skip
        axes.plot(last, share[-1], marker, color=color, markersize=4)
    axes.annotate(f"{last:.2g} and more", (last, 1), (3, -2), xycoords=("data", "axes fraction"),
                  textcoords="offset points", ha="right", va="top", fontsize=6)  # fmt: skip


def rates_in_words(data: xr.Dataset) -> str:
    """The learning rates chosen, in words."""
    return ", ".join(
        f"{name} {float(data['learning_rate'].sel(optimizer=name)):.2g}"
        for name in data["optimizer"].values.tolist()
    )
