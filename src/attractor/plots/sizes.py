"""What changes with the number of sequences in a data set."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from attractor.plots._style import COLORS


def fraction_bars(
    axes: Axes, fractions: xr.DataArray, *, color: str, chance: float | None = None
) -> None:
    """Draws one bar for each data-set size, with its number above, beside the chance level.

    Args:
        axes: Where to draw.
        fractions: Values from 0 to 1, dimension ``n``.
        color: Color of the bars.
        chance: Level that blind guessing would reach.
    """
    places = np.arange(fractions.sizes["n"])
    bars = axes.bar(places, fractions.values, width=0.6, color=color)
    axes.bar_label(bars, labels=[f"{100 * value:.3g} %" for value in fractions.values], padding=2)
    if chance is not None:
        axes.axhline(
            chance,
            color=COLORS["black"],
            linestyle="--",
            linewidth=1.1,
            label=f"chance: {100 * chance:.3g} %",
        )
        axes.legend(loc="upper right")
    axes.set_xticks(places, [str(n) for n in fractions["n"].values])
    axes.set_xlabel("images in a data set, n")
    axes.set_ylim(0, 1.12)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(False, axis="x")
