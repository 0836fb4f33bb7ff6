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
from attractor.plots.bias_matrix import frame, with_color_scale
from attractor.plots.geometries import numbers_on_colors

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
    for i, row in enumerate(cells):
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
    frame(axes, norms, {method: matrix.own_norm(method) for method in methods})
    return image


def tuned_matrix_figure(matrix: TunedMatrix) -> Figure:
    """The heat map with its color scale.

    Args:
        matrix: What ``attractor.analysis.bias.tuned_matrix`` returns.
    """
    note = (
        f"highest median over {matrix.data.sizes['instance']} data sets, its 95 % interval and "
        "step size; hatched: not settled; outlined: the own norm"
    )
    height = 1.4 + 0.4 * len(matrix.methods)
    return with_color_scale(height, lambda axes: tuned_map(axes, matrix), note)
