"""Training on in-context regression at several prompt lengths, beside what theory says."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE, SERIES
from attractor.plots.design.roles import tint
from attractor.plots.logarithmic import plain_numbers

_PANELS = {
    "risk": "risk",
    "value_label": "label weight $b$",
    "key_query_norm": r"$\|A\|_F$",
    "balance": r"$\|A\|^2 + |c|^2 - |v|^2 - b^2$",
}
_FLOW: dict[str, Any] = {"color": tint(COLORS["black"], 0.7), "linewidth": 4.5, "zorder": 1.5}
"""Wide and pale: training on infinite prompts lies on it."""
_NAMED = 6
"""Lengths in a legend, at most."""
_REFERENCES = {
    "linear": ("best linear attention", COLORS["black"], "--"),
    "ridge": ("ridge regression", COLORS["gray"], ":"),
}


def lengths_figure(
    data: xr.Dataset, *, time_of_step: float, flow: xr.Dataset | None = None
) -> Figure:
    """Risk, label weight, norm of ``A`` and balance against time, a curve for each length.

    Medians over seeds of the first head; linear attention is dashed.

    Args:
        data: Runs of training, as ``InContextRuns.to_xarray`` labels them.
        time_of_step: Time of gradient flow of a step.
        flow: The flow on infinite prompts: the same names along ``time``.
    """
    figure = Figure(figsize=(PAGE, 4.4))
    panels = figure.subplots(2, 2, sharex=True).ravel()
    time = data["step"].values * time_of_step
    shown = time > 0
    lengths = np.unique(data["length"].values)
    colors = dict(zip(lengths, _sequence(lengths), strict=True))
    median = data.median("seed").isel(head=0)
    for axes, (name, label) in zip(panels, _PANELS.items(), strict=True):
        for place in range(data.sizes["run"]):
            run = median.isel(run=place)
            dashed = str(run["attention"].values) == "linear"
            axes.plot(
                time[shown], run[name].values[shown], color=colors[float(run["length"])],
                linestyle="--" if dashed else "-",
            )  # fmt: skip
        if flow is not None:
            axes.plot(flow["time"].values, flow[name].values, **_FLOW)
        axes.set(xscale="log", title=label)
    panels[0].set_yscale("log")
    plain_numbers(panels[0].yaxis)
    risks = data["risk"].values[np.isfinite(data["risk"].values)]
    panels[0].set_ylim(max(risks[risks > 0].min() / 1.5, 1e-6), risks.max() * 1.5)
    panels[3].axhline(0, color=COLORS["gray"], linewidth=0.6)
    panels[3].set_ylim(*_limits(median["balance"].values))
    for axes in panels[2:]:
        axes.set_xlabel("time of gradient flow")
    named = lengths[np.unique(np.linspace(0, len(lengths) - 1, _NAMED).astype(int))]
    handles = [Line2D([], [], color=colors[length], label=_length(length)) for length in named]
    if "linear" in data["attention"].values and "softmax" in data["attention"].values:
        handles.append(Line2D([], [], color=COLORS["gray"], linestyle="--", label="linear"))
    if flow is not None:
        handles.append(Line2D([], [], label="flow, infinite prompts", **_FLOW))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5))
    return figure


def experiment_figure(data: xr.Dataset, references: xr.Dataset, query_noise: float) -> Figure:
    """Mean squared error against the length of prompts, where training ended.

    Runs that had not settled, on the plateau of default layers or still falling, are hollow.

    Args:
        data: Runs of training, as ``InContextRuns.to_xarray`` labels them.
        references: What ``InContextRuns.references`` gives.
        query_noise: Variance of the noise in labels of queries.
    """
    figure = Figure(figsize=(PAGE, 3.2))
    axes = figure.subplots()
    last = data["risk"].isel(step=-1).median("seed")
    for attention, style in zip(("softmax", "linear"), SERIES, strict=False):
        of_kind = np.flatnonzero(data["attention"].values == attention)
        if of_kind.size:
            _ends(axes, data, last, of_kind, query_noise, attention, style)
    for name, (label, color, dash) in _REFERENCES.items():
        if query_noise == 0 and not references[name].any():  # zero has no place on the axis
            continue
        axes.plot(references["length"], 2 * references[name] + query_noise, color=color,
                  linestyle=dash, linewidth=1.1, label=label)  # fmt: skip
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_formatter(NullFormatter())
    lengths = np.unique(data["length"].values[np.isfinite(data["length"].values)])
    if lengths.size <= _NAMED:
        axes.set_xticks(lengths, [f"{length:,.0f}" for length in lengths])
    axes.set(xlabel="tokens of a prompt", ylabel="mean squared error")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _ends(
    axes: Axes,
    data: xr.Dataset,
    last: xr.DataArray,
    runs: np.ndarray,
    noise: float,
    attention: str,
    style: Any,
) -> None:
    """The ends of all runs of one attention, in the order of their lengths."""
    lengths = data["length"].values[runs]
    order = runs[np.argsort(lengths)]
    order = order[np.isfinite(data["length"].values[order])]
    errors = 2 * last.values[order] + noise
    lengths = data["length"].values[order]
    axes.plot(lengths, errors, **style, linewidth=0.9)
    waiting = np.array([str(word) != "settled" for word in data["verdict"].values[order]])
    for hollow, label in ((False, f"{attention}, settled"), (True, f"{attention}, unfinished")):
        these = waiting == hollow
        if these.any():
            axes.plot(
                lengths[these], errors[these], "o", markersize=4, color=style["color"],
                markerfacecolor="white" if hollow else style["color"], label=label,
            )  # fmt: skip


def _sequence(lengths: np.ndarray) -> list[Any]:
    """Light to dark with the length; the infinite one has a color of its own."""
    finite = int(np.isfinite(lengths).sum())
    shades = matplotlib.colormaps["viridis_r"](np.linspace(0.15, 1, max(finite, 1)))
    rest = [COLORS["orange"]] * (len(lengths) - finite)
    return [*shades[:finite], *rest]


def _length(length: float) -> str:
    return "infinite prompts" if math.isinf(length) else f"{length:.0f} tokens"


def _limits(values: np.ndarray) -> tuple[float, float]:
    low, high = min(float(values.min()), 0), max(float(values.max()), 0)
    margin = 0.1 * (high - low) + 0.02
    return low - margin, high + margin
