"""Every optimizer's margin ratio in every norm at the best step size tried: a heat map."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from attractor.plots._figure import Figure
from attractor.plots._style import COLORS
from attractor.plots.geometries import geometry_label, numbers_on_colors

if TYPE_CHECKING:
    from attractor.analysis.bias import TunedMatrix

_POWER = re.compile(r"t\^(\S+)")
_UNSETTLED: dict[str, Any] = {"fill": False, "linewidth": 0, "hatch": "////", "alpha": 0.35}


def tuned_map(axes: Axes, matrix: TunedMatrix) -> AxesImage:
    """Draws the highest median ratios over the settings tried, with intervals and settings below.

    Cells that are not settled are hatched; the own norm of each optimizer is outlined.

    Args:
        axes: Where to draw.
        matrix: What ``attractor.analysis.bias.tuned_matrix`` returns.
    """
    methods = matrix.methods
    norms = [str(name) for name in matrix.data["norm"].values]
    cells = [[matrix.cell(method, norm) for norm in norms] for method in methods]
    values = np.array([[cell.median for cell in row] for row in cells])
    image = numbers_on_colors(axes, values, lambda value: "", white_from=0.62)
    outline: Any = {"fill": False, "linewidth": 1.6, "edgecolor": COLORS["orange"]}
    for i, (method, row) in enumerate(zip(methods, cells, strict=True)):
        for j, cell in enumerate(row):
            color = "white" if cell.median > 0.62 else COLORS["black"]
            place: Any = {"ha": "center", "color": color, "zorder": 4}
            words = "-" if math.isnan(cell.median) else f"{cell.median:.3f}"
            ends = f"{cell.low:.3f} to {cell.high:.3f}" if math.isfinite(cell.low) else ""
            power = _POWER.sub(r"$t^{\1}$", cell.setting)
            axes.text(j, i - 0.09, words, va="bottom", fontsize=7.5, **place)
            axes.text(j, i, ends, va="center", fontsize=4.8, **place)
            axes.text(j, i + 0.15, power, va="top", fontsize=4.8, **place)
            if not cell.settled:
                square = (j - 0.5, i - 0.5), 1, 1
                axes.add_patch(Rectangle(*square, edgecolor=COLORS["gray"], **_UNSETTLED))
        if matrix.own_norm(method) in norms:
            corner = norms.index(matrix.own_norm(method)) - 0.47, i - 0.45
            axes.add_patch(Rectangle(corner, 0.94, 0.9, zorder=5, **outline))
    axes.set_xticks(range(len(norms)), [geometry_label(name) for name in norms])
    axes.set_yticks(range(len(methods)), methods)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def tuned_matrix_figure(matrix: TunedMatrix) -> Figure:
    """The heat map with its color scale.

    Args:
        matrix: What ``attractor.analysis.bias.tuned_matrix`` returns.
    """
    figure = Figure(figsize=(7.2, 1.4 + 0.4 * len(matrix.methods)))
    axes = figure.subplots()
    image = tuned_map(axes, matrix)
    figure.colorbar(image, ax=axes, pad=0.02, fraction=0.04, aspect=30).set_label("margin ratio")
    note = (
        f"highest median over {matrix.data.sizes['instance']} data sets, its 95 % interval and "
        "step size; hatched: not settled; outlined: the own norm"
    )
    figure.supxlabel(note, fontsize=8, color="#555555")
    return figure
