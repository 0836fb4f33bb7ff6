"""Curves on the axes that make their law a line, with the slope fitted to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from attractor.plots.bands import write_in_middle
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, REACHED
from attractor.plots.design.roles import line_style, role_of

if TYPE_CHECKING:
    from attractor.analysis.rates import Rate

_MOST_CURVES = 100
_FEW = 4
"""Rates up to which panels are large, two in a row."""
_MINUS = "\N{MINUS SIGN}"


def _plot_rate(axes: Axes, rate: Rate) -> None:
    """Draws every trial lightly, their mean boldly, and the slope fitted to the gray window.

    The axes are those on which the law is a straight line; the mean is taken on them, at each
    recorded point. Around the line is the fan of slopes in its confidence interval. Where the
    slope has not settled, the lines of the two halves are drawn in place of it, and no number.
    """
    _name_axes(axes, rate)
    if not rate.trials:
        write_in_middle(axes, rate.reason.replace(" (", "\n("))
        axes.set(xticks=[], yticks=[])
        return
    if _log_abscissa(rate):
        axes.set_xscale("log")
    if _log_values(rate):
        axes.set_yscale("log")
    x, y = rate.data["abscissa"].values, rate.data["values"].values
    known = np.isfinite(x) & np.isfinite(y)
    for own_x, own_y, own in zip(*(array[:_MOST_CURVES] for array in (x, y, known)), strict=True):
        axes.plot(*_on_axes(rate, own_x[own], own_y[own]), color=REACHED, alpha=0.22, linewidth=0.7)
    everywhere = known.all(0)
    mean = "mean of trials" if rate.trials > 1 else "the trial"
    axes.plot(
        *_on_axes(rate, x[:, everywhere].mean(0), y[:, everywhere].mean(0)),
        color=REACHED,
        linewidth=2.2,
        label=mean,
    )
    _draw_lines(axes, rate, x, y)
    axes.legend(loc="best")


def rates_figure(rates: Sequence[Rate]) -> Figure:
    """A panel for every rate.

    Args:
        rates: The rates, such as those of ``fit_rates``; at least one.
    """
    rates = list(rates)
    width, height, most = (3.9, 3.0, 2) if len(rates) <= _FEW else (3.0, 2.3, 3)
    columns = min(most, len(rates))
    rows = math.ceil(len(rates) / columns)
    figure = Figure(figsize=(width * columns, height * rows))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, rate in zip(panels, rates, strict=False):
        _plot_rate(panel, rate)
    for panel in panels[len(rates) :]:
        panel.remove()
    return figure


def _draw_lines(axes: Axes, rate: Rate, x: np.ndarray, y: np.ndarray) -> None:
    window = rate.data["window"].values
    second = rate.data["second_half"].values
    begin, end = _ends(x, window)
    middle, _ = _ends(x, second)
    (begin, middle, end), _ = _on_axes(rate, np.array([begin, middle, end]), np.zeros(3))
    axes.axvspan(begin, end, color="#eeeeee", zorder=0)
    if not rate.settled:
        axes.axvline(middle, color=COLORS["gray"], linewidth=0.9, linestyle=(0, (1, 2)))
        label = "not settled: the halves differ"
        for part, half in (("first half", window & ~second), ("second half", second)):
            _draw_line(axes, rate, x, y, half, part, label)
            label = None
        return
    line = f"{rate.law.formula.format(x=rate.abscissa)},  a = {rate.slope_text()}"
    label = f"{line}\n{100 * rate.confidence:g} % interval {rate.interval_text()}"
    _draw_line(axes, rate, x, y, window, "whole window", label.replace("-", _MINUS))


def _draw_line(
    axes: Axes,
    rate: Rate,
    x: np.ndarray,
    y: np.ndarray,
    points: np.ndarray,
    part: str,
    label: str | None,
) -> None:
    """The line of one part of the window, through the middle of its points, and its fan."""
    slope = rate.parts[part]
    middle_x, middle_y = x[points].mean(), y[points].mean()
    along = np.linspace(*_ends(x, points), 50)
    low, mean, high = (
        middle_y + a * (along - middle_x) for a in (slope.low, slope.mean, slope.high)
    )
    shown_x, shown_y = _on_axes(rate, along, mean)
    fan = {"color": role_of("fitted").color, "alpha": 0.2, "linewidth": 0}
    axes.fill_between(shown_x, _on_axes(rate, along, low)[1], _on_axes(rate, along, high)[1], **fan)
    axes.plot(shown_x, shown_y, label=label, **line_style("fitted", linewidth=1.4))


def _ends(x: np.ndarray, points: np.ndarray) -> tuple[float, float]:
    """The first and the last abscissa of a part, averaged over trials."""
    begin = np.where(points, x, np.inf).min(1).mean()
    end = np.where(points, x, -np.inf).max(1).mean()
    return float(begin), float(end)


def _on_axes(rate: Rate, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of the line as drawn: logarithmic axes take numbers, not their logarithms."""
    if _log_abscissa(rate):
        x = np.exp(x)
    if _log_values(rate):
        y = np.exp(y)
    elif rate.law.log_values:
        y = y / np.log(10)
    return x, y


def _log_abscissa(rate: Rate) -> bool:
    """Whether the horizontal axis is logarithmic."""
    return rate.law.logarithms > rate.abscissa_is_log


def _log_values(rate: Rate) -> bool:
    """Whether the vertical axis is logarithmic; values given as logarithms may be too small."""
    return rate.law.log_values and not rate.values_are_logs


def _name_axes(axes: Axes, rate: Rate) -> None:
    logarithm_shown = rate.law.logarithms == 2 or rate.abscissa_is_log
    axes.set_xlabel(f"log {rate.abscissa}" if logarithm_shown else rate.abscissa)
    name = rate.quantity.replace("-", _MINUS)
    axes.set_ylabel(f"{name}, log10" if rate.values_are_logs else name)
