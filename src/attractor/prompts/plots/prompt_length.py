"""The errors of a head by the length of the prompt."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.ticker import FuncFormatter, NullFormatter

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, panels_on_page
from attractor.plots.design.roles import DASHED


def error_by_length_figure(data: xr.Dataset, error: float = 0.1) -> Figure:
    """Error against length, along the scores and of the whole output, as quantiles over queries.

    Args:
        data: What ``PromptLength.to_xarray`` returns.
        error: The error required, marked by a line.
    """
    figure, (left, right) = panels_on_page(2.9, 1, 2, sharey=True)
    known = data["error"].values[np.isfinite(data["error"].values)]
    lowest = max(known.min(initial=error), error / 30)
    left.set(yscale="log", ylim=(min(lowest, error / 3), 3))
    curves = [(left, "error", "blue", ""), (right, "output_error", "blue", "")]
    if "law_output_error" in data:
        curves.append((right, "law_output_error", "green", "law itself, "))
    lengths = data["length"].values
    for axes, name, color, law in curves:
        low, middle, high = np.where(np.isfinite(data[name]), data[name], np.nan)
        shown: dict[str, Any] = {"color": COLORS[color]}
        band = f"{law}5 % to 95 % of the queries"
        axes.fill_between(lengths, low, high, alpha=0.15, linewidth=0, label=band, **shown)
        axes.plot(lengths, middle, label=f"{law}half of the queries", **shown)
    for axes in (left, right):
        required = f"error required, {100 * error:.3g} %"
        axes.axhline(error, color=COLORS["orange"], linestyle=DASHED, linewidth=1, label=required)
        axes.set(xscale="log", xlim=lengths[[0, -1]], xlabel="tokens in the prompt, $L$")
        axes.xaxis.set_minor_formatter(NullFormatter())
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set(title="along the scores", ylabel="relative error")
    right.set_title("of the whole output")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
