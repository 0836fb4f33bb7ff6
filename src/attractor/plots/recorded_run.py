"""What a training run itself recorded: its loss, its norm, and how sharp attention became."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import xarray as xr

from attractor.plots import curves
from attractor.plots._figure import Figure
from attractor.plots._style import SERIES, panels_on_page


def trajectory_figure(runs: Mapping[str, xr.Dataset]) -> Figure:
    """Loss, norm and the highest attention weight of a row along the records.

    Args:
        runs: ``Trajectory.data`` by name of the run, all along the same axis.
    """
    figure, (loss, norm, attention) = panels_on_page(2.6 if len(runs) > 1 else 2.4, 1, 3)
    for (name, data), look in zip(runs.items(), cycle(SERIES), strict=False):
        curves.loss(loss, data, label=name, look=look)
        curves.norm_growth(norm, data, label=name, look=look)
        weights = data["attended_probability"].mean(("sequence", "query"))
        curves.band_curve(attention, weights, label=name, look=look)
    attention.set(ylabel="highest attention weight,\nmean over rows", ylim=(-0.03, 1.06))
    if len(runs) > 1:
        handles, labels = loss.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(runs), 4))
    trials = sum(data["status"].size for data in runs.values())
    note = f"line: median over trials; band: 10th to 90th percentile ({trials} trials)"
    figure.supxlabel("one trial" if trials == 1 else note, fontsize=8, color="#555555")
    return figure
