"""Required lengths of prompts: errors by length, the phase diagram, and score deviations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from attractor.plots._figure import Figure
from attractor.plots._style import COLORS, PAGE, panels_on_page
from attractor.plots.roles import DASH_DOTTED, DASHED, DOTTED, tint
from attractor.prompt.length.result import quantiles, token_count

_DARK = "#444444"
_BEHIND = "#3f6a7d"
"""The color behind white lines in a legend."""
_LEVELS = np.geomspace(0.01, 1, 9)


def error_by_length_figure(data: xr.Dataset, error: float = 0.1) -> Figure:
    """Error against length, along the scores and of the whole output, as quantiles over queries.

    Args:
        data: What ``error_quantiles`` returns.
        error: The error required, marked with the lengths at which it is reached.
    """
    figure, (left, right) = panels_on_page(3.1, 1, 2, sharey=True)
    frozen = data["freezing_length"].values
    known = data["error"].values[np.isfinite(data["error"].values)]
    lowest = max(known.min(), error / 30) if known.size else error / 30
    left.set(yscale="log", ylim=(min(lowest, error / 3), 3))
    for axes, name in ((left, "error"), (right, "output_error")):
        low, middle, high = np.where(np.isfinite(data[name].values), data[name].values, np.nan)
        lengths = data["length"].values
        axes.set(xscale="log", xlim=lengths[[0, -1]], xlabel="tokens in the prompt, $L$")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.fill_between(
            lengths, low, high, color=COLORS["blue"], alpha=0.15, linewidth=0,
            label="5 % to 95 % of the queries",
        )  # fmt: skip
        axes.plot(lengths, middle, color=COLORS["blue"], label="half of the queries")
        axes.plot(lengths, high, color=COLORS["blue"], linewidth=0.6)
        axes.axhline(
            error, color=COLORS["orange"], linestyle=DASHED, linewidth=1,
            label=f"error required, {100 * error:.3g} %",
        )  # fmt: skip
        _mark(axes, lengths, middle, error, marker="o", below=True)
        _mark(axes, lengths, high, error, marker="s", below=False)
        if np.isnan(middle).all():
            axes.text(
                0.5, 0.6, "the limit is zero for half of the queries", ha="center",
                transform=axes.transAxes, color=COLORS["gray"],
            )  # fmt: skip
    if "law_output_error" in data:
        exact = data["law_output_error"].values
        for values, width in zip(
            np.where(np.isfinite(exact), exact, np.nan)[1:], (1.5, 0.6), strict=True
        ):
            right.plot(data["length"].values, values, color=COLORS["green"], linewidth=width)
        left.plot([], [], color=COLORS["green"], label="of the law itself, the same shares")
    left.axvspan(
        1, min(frozen[1], left.get_xlim()[1]), color=tint(COLORS["gray"], 0.6), linewidth=0,
        zorder=0, label="few tokens hold all attention of half of the queries",
    )  # fmt: skip
    left.axvline(
        frozen[2], color=_DARK, linestyle=DOTTED, linewidth=1,
        label="to the left, few tokens hold that of 5 % of the queries",
    )  # fmt: skip
    left.yaxis.set_major_formatter(FuncFormatter(_as_percent))
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set_title("along the scores")
    right.set_title("of the whole output")
    left.set_ylabel("relative error")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def prompt_phase_figure(
    data: xr.Dataset, *, horizon: float, error: float, lengths: Sequence[float] = ()
) -> Figure:
    """The error of the median query by length and scale of the scores, with the head marked.

    Scores are in multiples of those of the head, so that it lies at 1.

    Args:
        data: What ``phase_diagram`` returns.
        horizon: The horizon of the head itself.
        error: The error required, a contour of its own.
        lengths: Lengths of prompts to mark.
    """
    figure, axes = panels_on_page(3.6)
    places, scales = data["length"].values, data["horizon"].values / horizon
    shown = np.ma.masked_invalid(np.clip(data["error"].values, 1e-3, 1e3))
    axes.set(xscale="log", yscale="log")
    image = axes.contourf(
        places, scales, shown, levels=_LEVELS, norm=LogNorm(_LEVELS[0], _LEVELS[-1]),
        cmap="viridis", extend="both",
    )  # fmt: skip
    contour: dict[str, Any] = {"levels": [error], "colors": "white", "linewidths": 1.6}
    axes.contour(places, scales, shown, **contour)
    axes.plot(data["freezing_length"].values, scales, color="white", linestyle=DOTTED)
    axes.axhline(np.sqrt(0.5) / horizon, color="white", linestyle=DASH_DOTTED, linewidth=0.9)
    axes.axhline(1, color=COLORS["orange"], linewidth=1.6)
    inside = [length for length in lengths if places[0] <= length <= places[-1]]
    axes.plot(
        inside, [1] * len(inside), "o", color=COLORS["orange"], markeredgecolor="white",
        clip_on=False, zorder=5,
    )  # fmt: skip
    axes.set(xlim=places[[0, -1]], ylim=scales[[0, -1]])
    axes.set(xlabel="tokens in the prompt", ylabel="scores, times those of this head")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    bar = figure.colorbar(image, ax=axes, pad=0.02, ticks=[0.01, 0.03, 0.1, 0.3, 1])
    bar.ax.yaxis.set_major_formatter(FuncFormatter(_as_percent))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_label("error along the scores, median query")
    figure.legend(
        handles=_phase_handles(error, bool(inside)), loc="outside lower center", ncols=2,
        facecolor=_BEHIND, framealpha=1, labelcolor="white",
    )  # fmt: skip
    return figure


def score_deviation_figure(score_deviation: Float[np.ndarray, "query"]) -> Figure:
    """The histogram of score deviations over queries.

    Args:
        score_deviation: The deviation ``s`` of each query.
    """
    figure = Figure(figsize=(PAGE / 2 + 0.6, 2.5))
    axes = figure.subplots()
    score_deviation = np.asarray(score_deviation)
    top = max(float(score_deviation.max()) * 1.05, 1e-12)
    counts, _, _ = axes.hist(
        score_deviation, bins=np.linspace(0, top, 31).tolist(), color=tint(COLORS["blue"], 0.35)
    )
    middle = float(quantiles(score_deviation)[1])
    axes.axvline(middle, color=COLORS["black"], linewidth=1.1)
    axes.set_ylim(0, 1.18 * float(np.max(counts)))
    axes.annotate(
        f"median {middle:.3g}", (middle, 1), (3, -2), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=7,
    )  # fmt: skip
    axes.set(xlim=(0, top), xlabel="standard deviation of the scores, $s$", ylabel="queries")
    return figure


def _mark(
    axes: Axes,
    lengths: Float[np.ndarray, "length"],
    curve: Float[np.ndarray, "length"],
    error: float,
    *,
    marker: str,
    below: bool,
) -> None:
    """Marks where a falling curve reaches the error, with the length there, below or above."""
    known = np.isfinite(curve) & (curve > 0)
    falling, places = np.log(curve[known][::-1]), np.log(lengths[known][::-1])
    if not known.any() or not falling[0] <= np.log(error) <= falling[-1]:
        return
    place = float(np.exp(np.interp(np.log(error), falling, places)))
    axes.plot(place, error, marker, color=COLORS["orange"], markeredgecolor="white", zorder=4)
    where: dict[str, Any] = {"xytext": (-3, -9), "ha": "right"} if below else {"xytext": (3, 4)}
    axes.annotate(
        token_count(place), (place, error), textcoords="offset points", fontsize=7, color=_DARK,
        bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}, **where,
    )  # fmt: skip


def _phase_handles(error: float, lengths: bool) -> list[Line2D]:
    white: dict[str, Any] = {"color": "white"}
    handles = [
        Line2D([], [], color=COLORS["orange"], linewidth=1.6, label="this head"),
        Line2D([], [], linewidth=1.6, label=f"error required, {100 * error:.3g} %", **white),
        Line2D([], [], linestyle=DOTTED, label="few tokens hold all attention left of it", **white),
        Line2D(
            [], [], linestyle=DASH_DOTTED, linewidth=0.9,
            label="above, the error of the average query falls more slowly", **white,
        ),
    ]  # fmt: skip
    if lengths:
        dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": COLORS["orange"]}
        dots["markeredgecolor"] = "white"
        handles.insert(1, Line2D([], [], label="lengths given", **dots))
    return handles


def _as_percent(value: float, _: Any) -> str:
    return f"{100 * value:g} %"
