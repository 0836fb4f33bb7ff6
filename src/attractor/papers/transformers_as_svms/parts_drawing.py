"""Drawing of training that keeps several tokens: errors of predictions, outcomes of a filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from attractor.papers.transformers_as_svms.parts import OUTCOMES, REASONS
from attractor.plots.design.look import COLORS
from attractor.plots.design.roles import DASHED, DOTTED, SOLID, ordered_line_styles

LABELS = {
    "both parts": r"$W_{\mathrm{fin}} + R\,W^{mm}$, both parts",
    "direction": "$W^{mm}$, directional part",
    "single token": "solution for a single token",
}
STYLES = {
    "both parts": {"color": COLORS["blue"], "linestyle": SOLID},
    "direction": {"color": COLORS["orange"], "linestyle": DOTTED},
    "single token": {"color": COLORS["green"], "linestyle": DASHED},
}
_FACES = {
    "passes": (COLORS["blue"], ""),
    "ambiguous": (COLORS["yellow"], "////"),
    "all tokens kept": ("#d9d9d9", "...."),
    "infeasible": (COLORS["black"], ""),
}
_SMALLEST = -30
"""Smaller weights are drawn here, as powers of ten."""


def error_curves(axes: Axes, errors: xr.DataArray, count: int) -> None:
    """Draws the mean of 1 - correlation with each prediction against the step.

    Args:
        axes: Where to draw.
        errors: Over (trial, step, prediction); NaN of trials left out.
        count: How many trials these are, written into the panel.
    """
    axes.set_yscale("log")
    for name, label in LABELS.items():
        one = errors.sel(prediction=name).dropna("trial")
        axes.plot(one["step"], one.mean("trial"), label=label, **STYLES[name])
    axes.text(0.96, 0.95, f"{count}", transform=axes.transAxes, ha="right", va="top", fontsize=7)
    axes.set(ylim=(1e-3, 1.2), xticks=(0, 1000, 2000))


def outcome_bars(axes: Axes, data: xr.Dataset, along: str) -> None:
    """Draws how many trials pass the filter and why the others do not, a bar for each kernel.

    Args:
        axes: Where to draw.
        data: ``outcome`` over (kernel, ``along``, trial), places in ``OUTCOMES``, -1 for none.
        along: The dimension that bars vary along.
    """
    kernels = data["kernel"].values
    width = 0.8 / len(kernels)
    present = [number for number in range(len(OUTCOMES)) if (data["outcome"] == number).any()]
    for slot, kernel in enumerate(kernels):
        outcome = data["outcome"].sel(kernel=kernel)
        places = np.arange(data.sizes[along]) + width * (slot - (len(kernels) - 1) / 2)
        total, bottom = (outcome >= 0).sum("trial").values, np.zeros(len(places))
        for number in present:
            counts = (outcome == number).sum("trial").transpose(along).values
            (color, hatch), words = _FACES[OUTCOMES[number]], REASONS[OUTCOMES[number]]
            bars = axes.bar(places, counts / total, 0.94 * width, bottom, facecolor=color)
            for bar in bars:
                bar.set(hatch=hatch, edgecolor="white", linewidth=0.5)
            bars.set_label(words if slot == 0 else "_")
            if number == 0:
                shares = [f"{100 * share:.3g} %" for share in counts / total]
                axes.bar_label(bars, shares, fontsize=6, padding=1.5, path_effects=_halo())
            bottom = bottom + counts / total
        for place in places if len(kernels) > 1 else ():
            word: Any = {"rotation": 90, "ha": "center", "va": "center", "fontsize": 6}
            axes.text(place, 0.6, str(kernel), path_effects=_halo(), **word)
    axes.set_xticks(np.arange(data.sizes[along]), [f"{value:g}" for value in data[along].values])
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_ylim(0, 1)
    axes.grid(False, axis="x")


def outcome_scatter(axes: Axes, data: xr.Dataset, along: str) -> None:
    """Draws the last error against the largest weight given up; what a filter rejects is shaded.

    Args:
        axes: Where to draw.
        data: ``error`` and ``largest_given_up`` over (``along``, trial), of one kernel.
        along: The dimension that colors vary along.
    """
    axes.set_yscale("log")
    axes.axvspan(-6, -3, color="#eeeeee", zorder=0, linewidth=0)
    word: Any = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 6}
    axes.text(-4.5, 0.04, "rejected", transform=axes.get_xaxis_transform(), **word)
    for value, look in zip(data[along].values, ordered_line_styles(data.sizes[along]), strict=True):
        one = data.sel({along: value})
        error = one["error"].isel(step=-1).sel(prediction="both parts")
        weight = one["largest_given_up"].clip(min=_SMALLEST)
        label = f"${along} = {value:g}$"
        axes.plot(weight, error, linestyle="none", markersize=2.2, alpha=0.7, label=label, **look)
    axes.set(xlim=(_SMALLEST - 1, -2.7), ylabel="1 \N{MINUS SIGN} correlation, both parts")
    places = (_SMALLEST, -20, -10, -6, -3)
    names = [f"\N{MINUS SIGN}{-place}" for place in places]
    axes.set_xticks(places, [f"\N{LESS-THAN OR EQUAL TO} {names[0]}", *names[1:]])
    axes.legend(loc="lower center", ncols=2, markerscale=1.5, handletextpad=0.1, borderaxespad=0.1)
    axes.set_xlabel("largest weight given up, logarithm to base 10")


def _halo() -> list[Any]:
    return [patheffects.withStroke(linewidth=2.0, foreground="white")]
