"""Every optimizer's margin ratio in every norm: a heat map, and the ratios against iterations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from attractor.checks import check_choice
from attractor.plots._figure import Figure
from attractor.plots._style import COLORS
from attractor.plots.geometries import geometry_label, numbers_on_colors

if TYPE_CHECKING:
    from attractor.analysis.bias import BiasMatrix

_COLUMNS = 4
_LOOKS = tuple(
    {"color": COLORS[color], "linestyle": dash}
    for color, dash in (
        ("blue", "-"), ("orange", "--"), ("green", "-."), ("purple", "-"),
        ("sky", "--"), ("yellow", "-"), ("black", ":"), ("gray", "-."),
    )
)  # fmt: skip


def bias_map(axes: Axes, matrix: BiasMatrix) -> AxesImage:
    """Draws median margin ratios as numbers on colors, the own norm of each optimizer outlined.

    Args:
        axes: Where to draw.
        matrix: What ``attractor.analysis.bias_matrix`` returns.
    """
    methods, norms = matrix.methods, [str(name) for name in matrix.data["norm"].values]
    values = np.array([[matrix.ratio(m, norm).median for norm in norms] for m in methods])
    image = numbers_on_colors(
        axes, values, lambda value: "-" if math.isnan(value) else f"{value:.3f}", white_from=0.62
    )
    frame(axes, norms, {method: matrix.own_norm(method) for method in methods})
    return image


def frame(axes: Axes, norms: Sequence[str], own_norms: Mapping[str, str]) -> None:
    """Names the columns and rows of a heat map, and outlines the own norm of each optimizer.

    Args:
        axes: Where it is drawn.
        norms: Names of the norms.
        own_norms: Those of the optimizers by their names; empty where none is known.
    """
    outline: Any = {"fill": False, "linewidth": 1.6, "edgecolor": COLORS["orange"], "zorder": 5}
    for i, own in enumerate(own_norms.values()):
        if own in norms:
            axes.add_patch(Rectangle((norms.index(own) - 0.46, i - 0.42), 0.92, 0.84, **outline))
    axes.set_xticks(range(len(norms)), [geometry_label(name) for name in norms])
    axes.set_yticks(range(len(own_norms)), [*own_norms])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def with_color_scale(height: float, draw: Callable[[Axes], AxesImage], note: str) -> Figure:
    """A heat map of margin ratios with its color scale, and a note below."""
    figure = Figure(figsize=(7.2, height))
    axes = figure.subplots()
    scale = figure.colorbar(draw(axes), ax=axes, pad=0.02, fraction=0.04, aspect=30)
    scale.set_label("margin ratio")
    figure.supxlabel(note, fontsize=8, color="#555555")
    return figure


def bias_matrix_figure(matrix: BiasMatrix) -> Figure:
    """The heat map with its color scale.

    Args:
        matrix: What ``attractor.analysis.bias_matrix`` returns.
    """
    note = f"median over {matrix.data.sizes['instance']} data sets; outlined: the optimizer's norm"
    if not all(matrix.own_norm(method) for method in matrix.methods):
        note += "; none outlined: it descends in no norm that is known"
    height = 1.3 + 0.27 * len(matrix.methods)
    return with_color_scale(height, lambda axes: bias_map(axes, matrix), note)


def ratio_curves(axes: Axes, matrix: BiasMatrix, method: str) -> None:
    """Draws the median ratio in every norm against the step, with a band around the own one.

    The band goes from the 10th to the 90th percentile of data sets. Where no norm is known as the
    optimizer's own, it is around that with the highest median at the end.

    Args:
        axes: Where to draw.
        matrix: What ``attractor.analysis.bias_matrix`` returns.
        method: The row.

    Raises:
        InvalidInputError: If there is no row of that name.
    """
    check_choice("method", method, matrix.methods)
    curves = matrix.data["margin_ratio_curve"].sel(optimizer=method)
    steps = matrix.data["step"].sel(optimizer=method).values
    known = np.isfinite(steps)
    main = matrix.own_norm(method) or matrix.best(method)
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
        matrix: What ``attractor.analysis.bias_matrix`` returns.
    """
    methods = matrix.methods
    rows = math.ceil(len(methods) / _COLUMNS)
    columns = math.ceil(len(methods) / rows)
    width, height = (7.2, 0.9 + 1.45 * rows) if len(methods) > 1 else (6.0, 3.6)
    figure = Figure(figsize=(width, height))
    panels = np.atleast_1d(figure.subplots(rows, columns, sharey=True, squeeze=False)).ravel()
    for axes, method in zip(panels, methods, strict=False):
        ratio_curves(axes, matrix, method)
        size = 7 if len(methods) > 1 else 9
        axes.set_title(method, fontsize=size, fontweight="normal", loc="left")
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
