"""Share of data sets on which training ends at the optimal tokens, against the dimension."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least, at_most
from attractor.papers.plots.shares import fraction_curve
from attractor.papers.transformers_as_svms.selections_reached import (
    DASHES,
    selections_reached,
    training_handles,
)
from attractor.plots.design.look import COLORS, panels_on_page
from attractor.plots.design.pairs import shared_legend
from attractor.plots.design.roles import ordered_line_styles
from attractor.results.paper import TRANSFORMERS_AS_SVMS

_COUNTS = (5, 10, 15)
_PANELS = {"n": [(n, 5) for n in _COUNTS], "T": [(5, T) for T in _COUNTS]}
"""Sequences n and tokens T of the curves, by panel: which of the two it varies."""


def _compute(request: Request) -> xr.Dataset:
    pairs = sorted({pair for panel in _PANELS.values() for pair in panel})
    sizes = [(n, T, d) for n, T in pairs for d in request.settings["dimensions"]]
    found = selections_reached(sizes, request)
    return found[["optimal", "settled", "separable"]].astype("int8")


def _readings(data: xr.Dataset) -> Readings:
    share = data["optimal"].mean("data_set")
    first, last = (int(data["d"].values[place]) for place in (0, -1))
    low, high = (share.isel(size=data["d"].values == d) for d in (first, last))
    ends = {pair: _at(share, pair, last) for panel in _PANELS.values() for pair in panel}
    easiest = ends.pop((5, 5))
    rise = high.values - low.values
    alike = np.corrcoef(share.transpose("parameterization", "size").values)[0, 1]
    lost = int(((data["optimal"] == 1) & (data["separable"] == 0)).sum())
    unsettled = 1 - data["settled"].mean(("data_set", "parameterization"))
    return Readings(
        at_least(f"n = T = 5, d = {last}: share at the optimal tokens", easiest.min(), 0.85),
        at_least(f"least rise of a share from d = {first} to {last}", rise.min(), 0.2),
        at_least(
            f"d = {last}: share for n = T = 5 less the mean for more sequences or tokens",
            easiest.mean() - np.mean(list(ends.values())),
            0.0,
        ),
        at_least("correlation over the sizes between shares of W and of (K, Q)", alike, 0.8),
        at_most("trials at optimal tokens that no matrix separates", lost, 0),
        first=first,
        last=last,
        reached="; ".join(
            f"n = {n}, T = {T}: {W:.0%} and {KQ:.0%}"
            for (n, T), (W, KQ) in {(5, 5): easiest, **ends}.items()
        ),
        unsettled=unsettled.isel(size=data["d"].values == first).mean(),
    )


def _at(share: xr.DataArray, pair: tuple[int, int], d: int) -> np.ndarray:
    """Shares of both parameterizations at one size."""
    n, T = pair
    here = (share["n"].values == n) & (share["T"].values == T) & (share["d"].values == d)
    return share.isel(size=here).values[:, 0]


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.7, 1, 2, sharey=True)
    for axes, (varied, pairs) in zip(panels, _PANELS.items(), strict=True):
        _panel(axes, data, varied, pairs)
        axes.set_title("T = 5 tokens" if varied == "n" else "n = 5 sequences")
    panels[0].set_ylabel("ends at the optimal tokens")
    shared_legend(figure, panels, handles=training_handles(COLORS["black"]))
    return figure


def _panel(axes: Axes, data: xr.Dataset, varied: str, pairs: list[tuple[int, int]]) -> None:
    looks = ordered_line_styles(len(pairs))
    for (n, T), look, middle in zip(pairs, looks, (-3.0, 0.0, 3.0), strict=True):
        here = (data["n"].values == n) & (data["T"].values == T)
        reached = data["optimal"].isel(size=here).swap_dims(size="d")
        for (name, dash), side in zip(DASHES.items(), (-0.7, 0.7), strict=True):
            fraction_curve(
                axes,
                reached.sel(parameterization=name).sum("data_set"),
                data.sizes["data_set"],
                "d",
                look=look | {"linestyle": dash},
                label=f"${varied} = {n if varied == 'n' else T}$" if name == "W" else None,
                shift=middle + side,
            )
    axes.set_xlabel("dimension $d$")


GLOBAL_SELECTION = Figures(TRANSFORMERS_AS_SVMS).figure(
    "global-selection",
    "share of data sets on which training ends at the optimal tokens, against d",
    statement="experiment: global convergence and over-parameterization",
    published="share of 100 data sets against d up to 75, for three n and three T; W and (K, Q)",
    sizes={
        "quick": {"seeds": 20, "steps": 1000, "dimensions": (2, 5, 20)},
        "small": {"seeds": 40, "steps": 1000, "dimensions": (2, 5, 10, 20)},
        "paper": {"seeds": 100, "steps": 1000, "dimensions": (2, 5, 10, 20, 30, 50, 75)},
    },
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Share of {sizes[data_set]} data sets of random unit tokens on which training ends at the "
        "optimal token of every sequence, against the dimension d, with Wilson's 95 % intervals; W "
        "solid, (K, Q) dashed. Left: more sequences n of 5 tokens; right: more tokens T in 5 "
        "sequences. At d = {last}, W and (K, Q) reach them on: {reached}. A trial counts by the "
        "tokens attended to most at the last step; where those are the optimal ones, a matrix that "
        "separates them exists. At d = {first} attention has not settled on one token of every "
        "sequence (weight 0.99) in {unsettled:.0%} of the trials: mostly nothing separates the "
        "optimal tokens there."
    ),
)
