"""Basins of attraction of prompt vectors: which tokens each start ends on."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attractor.analysis.basins import basin_boundary, basin_map
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.max_margin.data import one_sequence, trapped_sequence
from attractor.papers.paper import MAX_MARGIN
from attractor.plots._figure import Figure
from attractor.plots._style import PAGE
from attractor.plots.basins import basin_map_axes
from attractor.training import normalized_gradient_descent

PANELS = {
    "one_sequence": (3.0, "one sequence, scores (1, .9, 0)"),
    "two_sequences": (8.0, "two sequences, scores (1, 0) each"),
}
"""Half the width of the plane shown, and the title."""


def _compute(request: Request) -> xr.Dataset:
    settings, optimizer = request.settings, normalized_gradient_descent(0.1)
    cases = one_sequence(equal_scores=False), trapped_sequence()
    parts = []
    for (name, (extent, _)), case in zip(PANELS.items(), cases, strict=True):
        request.uses(name, case.tokens, case.head)
        found = basin_map(
            case.tokens,
            case.head,
            optimizer,
            parameterization="p",
            extent=extent,
            resolution=settings["resolution"],
            steps=settings["steps"],
            progress=request.progress,
        )
        data = found.data.assign_attrs({})
        renamed = {each: f"{each}_of_{name}" for each in (*data.variables, *data.dims)}
        parts.append(data.rename(renamed).assign_attrs({name: found.data.attrs["optimizer"]}))
    border = basin_boundary(
        cases[0].tokens,
        cases[0].head,
        optimizer,
        np.array([0.0, -1.5]),
        np.array([0.0, 0.0]),
        parameterization="p",
        steps=5000,
        tolerance=1e-6,
    )
    whole = parts[0].merge(parts[1]).assign_attrs(parts[0].attrs | parts[1].attrs)
    return whole.assign(boundary=border.middle[1, 0], boundary_settled=border.settled)


def _panel(data: xr.Dataset, name: str) -> xr.Dataset:
    """The data of one map under their own names."""
    ending = f"_of_{name}"
    own = [each for each in data.variables if str(each).endswith(ending)]
    panel = data[[each for each in own if each in data.data_vars]]
    names = {each: str(each).removesuffix(ending) for each in (*panel.variables, *panel.dims)}
    return panel.rename(names).assign_attrs(optimizer=data.attrs[name])


def _share_of_best(panel: xr.Dataset) -> float:
    best = np.flatnonzero(panel["globally_optimal"].values)
    return float(np.isin(panel["basin"].values, best).mean())


def _readings(data: xr.Dataset) -> Readings:
    one, two = (_panel(data, name) for name in PANELS)
    on_best_of_one, on_best_of_two = _share_of_best(one), _share_of_best(two)
    return Readings(
        at_least("one sequence: part that ends on the best token", on_best_of_one, 0.5),
        at_most("one sequence: the same", on_best_of_one, 0.9),
        at_most("one sequence: boundary on the line p1 = 0", data["boundary"], -0.5, "boundary"),
        at_least("one sequence: the same", data["boundary"], -1.0),
        at_least("two sequences: selections that starts settle on",
                 len(np.unique(two["basin"].values[two["basin"].values >= 0])), 2),
        at_most("two sequences: part that ends on the best tokens", on_best_of_two, 0.99),
        at_most("largest part that has not settled",
                max(float((panel["basin"] < 0).mean()) for panel in (one, two)), 0.02),
        percent_on_wrong=100 * (1 - on_best_of_two),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 4.6), layout="compressed")
    for axes, (name, (_, title)) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        basin_map_axes(axes, _panel(data, name))
        axes.set_title(title)
        legend = axes.get_legend()
        assert legend is not None
        legend.set_loc("upper center")
        legend.set_bbox_to_anchor((0.5, -0.17), axes.transAxes)
    left = figure.axes[0]
    left.plot(0, data["boundary"], "x", color="black", markersize=6, zorder=6)
    where = f"boundary on the line $p_1 = 0$:\n$p_2 = {float(data['boundary']):.3f}$"
    left.annotate(where, (0, float(data["boundary"])), (2, -9), textcoords="offset points",
                  fontsize=6.5, va="top")  # fmt: skip
    return figure


BASINS = Figures(MAX_MARGIN).figure(
    "basins",
    "which tokens a prompt vector ends on, for every start in the plane",
    statement="local convergence of gradient descent: basins of attraction",
    published="none",
    sizes=by_size(seeds=1, steps=1000, resolution=[40, 80, 160]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Which tokens a prompt vector ends on, for every start in the plane, under exact "
        "normalized gradient descent with step 0.1; each run is followed until one direction has "
        "won. Left: the second token is locally optimal; on the line p1 = 0 the boundary (cross) "
        "lies at p2 = {boundary:.5f}. Right: all tokens but the best have equal scores and are "
        "support tokens, so that there is no stationary point, and still starts on the far side "
        "keep the second sequence on its wrong token for ever ({percent_on_wrong:.0f} % of this "
        "frame)."
    ),
)
