"""Runs side by side: panels that they share or have rows of, and what each recorded."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from attractor.plots import curves
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import PAGE, SERIES, panels_on_page
from attractor.plots.design.pairs import shared_legend

TOGETHER = 3
"""Runs that share axes; more of them would hide one another."""
_MOST_ROWS = 12
_NAME = 22
"""Letters of a name that fit beside a row."""
_TITLES = 96
"""Letters that fit above the panels of a row, in all."""
_OTHERS: Mapping[str, Any] = {"color": "#bbbbbb", "linewidth": 0.8, "zorder": 1.6}
"""The look of the runs of other rows."""


def panels_of_runs(
    panels: Sequence[Callable[..., None]],
    runs: Mapping[str, xr.Dataset],
    *,
    columns: int,
    height: float,
    trials: str,
) -> Figure:
    """Draws curves of runs, each with the band of its trials.

    Up to three runs share their panels. Of more each has a row of its own, on the scales of all,
    with the others behind it in gray; of more than twelve, twelve are drawn.

    Args:
        panels: What each panel draws: functions of axes, a run, and ``label``, ``look``, ``slot``.
        runs: The data by name of the run, all along the same axis.
        columns: Panels side by side where runs share them.
        height: Height of a row of these, in inches.
        trials: How many trials a curve is of, in words.
    """
    if len(runs) > TOGETHER:
        return _a_row_each(panels, runs, trials)
    rows = len(panels) // columns
    legend = 0.25 if len(runs) > 1 else 0.0
    figure, places = panels_on_page(rows * height + legend, rows, columns, squeeze=False)
    for axes, draw in zip(places.ravel(), panels, strict=True):
        for number, (name, data) in enumerate(runs.items()):
            draw(axes, data, label=name, look=SERIES[number], slot=(number, len(runs)))
    if len(runs) > 1:
        shared_legend(figure, places.ravel()[:1], where="upper")
    around = "band" if len(runs) == 1 else "bars"
    _say(figure, f"line: median over trials; {around}: 10th to 90th percentile ({trials})", trials)
    return figure


def trials_in_words(total: Sequence[int], known: Sequence[int] | None = None) -> str:
    """How many trials a curve is of.

    Args:
        total: The trials of each run.
        known: Those of them that have a solution to compare with; default: all.
    """
    each = "" if len(total) == 1 else " a line"
    count = _least_to_most(total)
    if count == "1":
        return f"one trial{each}"
    some = "" if known is None else _least_to_most(known)
    rest = "" if some in ("", count) else f", of which {some} have a solution to compare with"
    return f"{count} trials{each}{rest}"


def _least_to_most(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _a_row_each(
    panels: Sequence[Callable[..., None]], runs: Mapping[str, xr.Dataset], trials: str
) -> Figure:
    chosen = np.unique(np.linspace(0, len(runs) - 1, min(len(runs), _MOST_ROWS)).round())
    names = [name for place, name in enumerate(runs) if place in chosen]
    figure = Figure(figsize=(PAGE, 0.7 + 1.15 * len(names)))
    places = figure.subplots(len(names), len(panels), sharex=True, squeeze=False)
    for name, row in zip(names, places, strict=True):
        for axes, draw in zip(row, panels, strict=True):
            draw(axes, runs[name], label=name, look=SERIES[0])
    for column in places.T:
        for axes in column[:-1]:
            axes.set_xlabel("")
        _share(column, _TITLES // len(panels))
    for name, row in zip(names, places, strict=True):
        row[0].set_ylabel(_wrapped(name.replace(", ", ",\n"), _NAME), fontsize=7)
    some = "" if len(names) == len(runs) else f"; {len(names)} of {len(runs)} runs are drawn"
    band = "blue: median over trials, and 10th to 90th percentile"
    _say(figure, f"{band} ({trials}); gray: the other rows{some}", trials)
    return figure


def _share(column: Sequence[Axes], width: int) -> None:
    """Puts panels of one measure on one scale, its name above them, and each curve into all."""
    curves = [
        next((line for line in axes.lines if not str(line.get_label()).startswith("_")), None)
        for axes in column
    ]
    limits = np.array([axes.get_ylim() for axes in column])
    for axes, own in zip(column, curves, strict=True):
        for other in curves:
            if other is not None and other is not own:
                axes.plot(other.get_xdata(), other.get_ydata(), **_OTHERS)
        axes.set_ylim(limits.min(), limits.max())
    column[0].set_title(_wrapped(column[0].get_ylabel(), width))
    for axes in column:
        axes.set_ylabel("")


def _wrapped(words: str, width: int) -> str:
    """Words in lines; a value stays beside its equals sign."""
    kept = words.replace("= ", "=\N{NO-BREAK SPACE}")
    return "\n".join(textwrap.fill(line, width) for line in kept.splitlines())


def _say(figure: Figure, words: str, trials: str) -> None:
    """Writes below what lines and bands are, unless there is one trial and no band."""
    shown = trials if trials.startswith("one trial") else words
    figure.supxlabel(shown, fontsize=8, color="#555555")


def trajectory_figure(runs: Mapping[str, xr.Dataset]) -> Figure:
    """Loss, norm and the highest attention weight of a row along the records.

    Up to three runs share the panels; of more, each has a row of its own.

    Args:
        runs: ``Trajectory.data`` by name of the run, all along the same axis.
    """
    trials = trials_in_words([data["status"].size for data in runs.values()])
    panels = (_loss, curves.norm_growth, _highest_weight)
    return panels_of_runs(panels, runs, columns=3, height=2.4, trials=trials)


def _loss(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    """The loss; attention heads share it, so that in a shared panel it is drawn once."""
    head = data.attrs.get("attention_head")
    if head and "slot" in options:
        axes.plot([], [], label=options["label"], **options["look"])
        return
    curves.loss(axes, data, **options)
    if head is not None:
        axes.set_ylabel("training loss, of all heads")


def _highest_weight(axes: Axes, data: xr.Dataset, **options: Any) -> None:
    weights = data["attended_probability"].mean(("sequence", "query"))
    curves.band_curve(axes, weights, **options)
    axes.set(ylabel="highest attention weight,\nmean over rows", ylim=(-0.03, 1.06))
