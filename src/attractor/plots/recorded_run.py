"""What a training run itself recorded: its loss, its norm, and how sharp attention became."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from attractor.plots import curves
from attractor.plots.design.figure import Figure
from attractor.plots.several_runs import panels_of_runs, trials_in_words


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
