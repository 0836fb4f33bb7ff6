"""Every optimizer's margin ratio in every norm: a heat map, and the ratios against iterations."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS
from attractor.plots.geometries import geometry_label, numbers_on_colors

if TYPE_CHECKING:
    from attractor.maps.bias import BiasMatrix

_COLUMNS = 4
_LOOKS = tuple(
    {"color": COLORS[color], "linestyle": dash}
    for color, dash in (
        ("blue", "-"), ("orange", "--"), ("green", "-."), ("purple", "-"),
        ("sky", "--"), ("yellow", "-"), ("black", ":"), ("gray", "-."),
    )
)  # fmt: skip


_POWER = re.compile(r"t\^(\S+)")
_OUTLINE: dict[str, Any] = {
    "fill": False, "linewidth": 1.6, "edgecolor": COLORS["orange"], "zorder": 5
}  # fmt: skip
_UNSETTLED: dict[str, Any] = {
    "fill": False, "linewidth": 0, "edgecolor": COLORS["gray"], "hatch": "////", "alpha": 0.35
}  # fmt: skip


def _bias_map(axes: Axes, matrix: BiasMatrix) -> AxesImage:
    """Draws the highest median ratios over the settings tried, with intervals and settings below.

    Cells that are not settled are hatched; the own norm of each optimizer is outlined.

    Args:
        axes: Where to draw.
        matrix: What ``attractor.maps.bias_matrix`` returns.
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
                axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **_UNSETTLED))
        own = matrix.own_norm(methods[i])
        if own in norms:
            square = (norms.index(own) - 0.46, i - 0.42), 0.92, 0.84
            axes.add_patch(Rectangle(*square, **_OUTLINE))
    axes.set_xticks(range(len(norms)), [geometry_label(name) for name in norms])
    axes.set_yticks(range(len(methods)), methods)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def bias_matrix_figure(matrix: BiasMatrix) -> Figure:
    """The heat map with its color scale.

    Args:
        matrix: What ``attractor.maps.bias_matrix`` returns.
    """
    figure = Figure(figsize=(7.2, 1.4 + 0.4 * len(matrix.methods)))
    axes = figure.subplots()
    scale = figure.colorbar(_bias_map(axes, matrix), ax=axes, pad=0.02, fraction=0.04, aspect=30)
    scale.set_label("margin ratio")
    note = (
        f"{'highest ' if matrix.tuned else ''}median over {matrix.data.sizes['instance']} data "
        "sets, its 95 % interval and step size; hatched: not settled; outlined: the own norm"
    )
    figure.supxlabel(note, fontsize=8, color="#555555")
    return figure


def _ratio_curves(axes: Axes, matrix: BiasMatrix, method: str) -> None:
    """Draws the median ratio in every norm against the step, with a band around the own one.

    The band goes from the 10th to the 90th percentile of data sets. Where no norm is known as the
    optimizer's own, it is around that with the highest median at the end. Of several step sizes it
    is the best one.

    Args:
        axes: Where to draw.
        matrix: What ``attractor.maps.bias_matrix`` returns.
        method: The optimizer.

    Raises:
        InvalidInputError: If there is none of that name.
    """
    best = matrix.best(method)
    run = matrix.data.sel(optimizer=best.row)
    curves, steps = run["margin_ratio_curve"], run["step"].values
    known = np.isfinite(steps)
    main = matrix.own_norm(method) or best.norm
    for norm in matrix.compared(method):
        values = curves.sel(norm=norm).transpose("record", "instance").values[known]
        look: Any = _look(matrix, norm)
        heavy = norm == main
        axes.plot(
            steps[known],
            np.nanmedian(values, axis=1),
            linewidth=1.9 if heavy else 0.9,
            zorder=3 if heavy else 2,
            **look,
        )
        if heavy and values.shape[1] > 1:
            low, high = np.nanquantile(values, (0.1, 0.9), axis=1)
            axes.fill_between(steps[known], low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set(xscale="log", ylim=(-0.25, 1.04))


def ratio_curves_figure(matrix: BiasMatrix) -> Figure:
    """A panel for each optimizer with its ratios in every norm against iterations.

    Args:
        matrix: What ``attractor.maps.bias_matrix`` returns.
    """
    methods = matrix.methods
    rows = math.ceil(len(methods) / _COLUMNS)
    columns = math.ceil(len(methods) / rows)
    width, height = (7.2, 0.9 + 1.45 * rows) if len(methods) > 1 else (6.0, 3.6)
    figure = Figure(figsize=(width, height))
    panels = np.atleast_1d(figure.subplots(rows, columns, sharey=True, squeeze=False)).ravel()
    for axes, method in zip(panels, methods, strict=False):
        _ratio_curves(axes, matrix, method)
        size = 7 if len(methods) > 1 else 9
        axes.set_title(matrix.best(method).row, fontsize=size, fontweight="normal", loc="left")
        axes.tick_params(labelsize=6 if len(methods) > 1 else 8)
    for axes in panels[len(methods) :]:
        axes.set_axis_off()
    handles = [
        Line2D([], [], linewidth=1.3, label=geometry_label(str(norm)), **_look(matrix, str(norm)))
        for norm in matrix.data["norm"].values
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=7)
    known = [bool(matrix.own_norm(method)) for method in methods]
    thick = "its own norm" if all(known) else "the best norm"
    if any(known) and not all(known):
        thick = "its own norm, or the best where none is known"
    figure.supxlabel(f"iteration (thick: {thick}; band: 10th to 90th percentile)", fontsize=8)
    figure.supylabel("margin ratio", fontsize=8)
    return figure


def _look(matrix: BiasMatrix, norm: str) -> dict[str, Any]:
    names = [str(name) for name in matrix.data["norm"].values]
    return _LOOKS[names.index(norm) % len(_LOOKS)]
