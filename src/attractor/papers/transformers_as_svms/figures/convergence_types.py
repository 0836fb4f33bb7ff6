"""Kinds of directions in which training ends, against the dimension."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least, at_most
from attractor.papers.plots.shares import fraction_curve, stacked_shares
from attractor.papers.transformers_as_svms.selections_reached import selections_reached
from attractor.plots.design.look import COLORS, panels_on_page
from attractor.plots.design.pairs import shared_legend
from attractor.plots.design.roles import DASHED, SOLID
from attractor.results.paper import TRANSFORMERS_AS_SVMS

_PAIRS = ((4, 4), (5, 5))
"""Sequences n and tokens T of the panels."""
_OUTCOMES = ("globally_optimal", "locally_optimal", "neither", "not_settled")
_NAMES = {"W": "$W$", "KQ": "$KQ$"}
_OF_DATA = {
    "separable": ("separable", {"color": COLORS["green"], "linestyle": SOLID, "marker": "^"}),
    "all_support": (
        "all others are support tokens",
        {"color": COLORS["purple"], "linestyle": DASHED, "marker": "D"},
    ),
}
"""Properties of the optimal tokens in the lower panels."""


def _compute(request: Request) -> xr.Dataset:
    sizes = [(n, T, d) for n, T in _PAIRS for d in request.settings["dimensions"]]
    found = selections_reached(sizes, request)
    classes = [
        found["settled"] & found["optimal"] & found["locally_optimal"],
        found["settled"] & ~found["optimal"] & found["locally_optimal"],
        found["settled"] & ~found["locally_optimal"],
        ~found["settled"],
    ]
    outcome = xr.IndexVariable("outcome", list(_OUTCOMES))
    return xr.Dataset(
        {
            "trials": xr.concat(classes, outcome).sum("data_set"),
            "optimal": found["optimal"].sum("data_set"),
            "locally_optimal": found["locally_optimal"].sum("data_set"),
            "separable": found["separable"].sum("data_set"),
            "all_support": found["all_support"].sum("data_set"),
            "data_sets": found.sizes["data_set"],
        }
    )


def _ends(data: xr.Dataset, n: int, T: int) -> str:
    """Shares of one size of data sets at the optimal tokens, in the fewest and most dimensions."""
    d, count = data["d"].values, int(data["data_sets"])
    own = data.isel(size=(data["n"].values == n) & (data["T"].values == T))
    optimal = [own["optimal"].sel(parameterization=name) / count for name in _NAMES]
    shares = ", ".join(
        f"{name} {one[0]:.0%} and {one[-1]:.0%}" for name, one in zip(_NAMES, optimal, strict=True)
    )
    support = own["all_support"].isel(size=own["d"].values == d.max()).item() / count
    return (
        f"n = {n}, T = {T}: {shares}; all other tokens are support tokens on {support:.0%} at "
        f"d = {d.max()}"
    )


def _readings(data: xr.Dataset) -> Readings:
    d, count = data["d"].values, int(data["data_sets"])
    shares = data["trials"] / count
    settled = 1 - shares.sel(outcome="not_settled")
    wide = d >= 4
    settled_wide = settled.isel(size=wide)
    local = (
        shares.sel(outcome=["globally_optimal", "locally_optimal"]).sum("outcome").isel(size=wide)
    )
    of_global = shares.sel(outcome="globally_optimal")
    first, last = of_global.isel(size=d == d.min()), of_global.isel(size=d == d.max())
    support = data["all_support"].isel(size=(data["n"].values == 4) & (d == d.max()))
    together = float(local.sum() / settled_wide.sum())
    reached = data["optimal"] - data["trials"].sel(outcome="globally_optimal")
    missed = reached.isel(size=wide) - data["trials"].sel(outcome="not_settled").isel(size=wide)
    return Readings(
        at_least("d >= 4: locally optimal, of all trials that have settled", together, 0.95),
        at_least("d >= 4: least share of trials that have settled", settled_wide.min(), 0.9),
        at_least(f"d = {d.max()}: least share at the globally optimal tokens", last.min(), 0.8),
        at_least(
            f"least rise of that share from d = {d.min()} to {d.max()}",
            (last.values - first.values).min(),
            0.2,
        ),
        at_least(
            f"n = T = 4, d = {d.max()}: share where all others are support tokens",
            support.item() / count,
            0.15,
        ),
        at_most("settled trials at optimal tokens that are not locally optimal", missed.max(), 0),
        data_sets=count,
        narrowest=d.min(),
        widest=d.max(),
        ends=". ".join(_ends(data, n, T) for n, T in _PAIRS),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(4.5, 2, 2, sharey="row", sharex=True, height_ratios=(2, 1))
    for column, (n, T) in zip(panels.T, _PAIRS, strict=True):
        here = (data["n"].values == n) & (data["T"].values == T)
        panel = data.isel(size=here).swap_dims(size="d")
        _outcomes(column[0], panel)
        for name, (label, look) in _OF_DATA.items():
            count = int(panel["data_sets"])
            fraction_curve(column[1], panel[name], count, "d", look=look, label=label)
        column[0].set_title(f"{n} sequences of {T} tokens", pad=12)
        column[0].set_xlabel("")
        column[1].set_xlabel("dimension $d$")
    panels[0, 0].set_ylabel("how training ends")
    panels[1, 0].set_ylabel("the optimal tokens")
    shared_legend(figure, panels[:, 0])
    return figure


def _outcomes(axes: Axes, panel: xr.Dataset) -> None:
    places = np.arange(panel.sizes["d"])
    for slot, (name, written) in enumerate(_NAMES.items()):
        one = panel.sel(parameterization=name)
        stacked_shares(axes, one["trials"], "d", slot=(slot, 2), name=written, label=slot == 0)
        axes.plot(
            places + 0.45 * (slot - 0.5),
            one["optimal"] / int(panel["data_sets"]),
            linestyle="none",
            marker="_",
            markersize=11,
            markeredgewidth=1.6,
            color=COLORS["black"],
            label="attend most to optimal tokens" if slot == 0 else None,
        )


CONVERGENCE_TYPES = Figures(TRANSFORMERS_AS_SVMS).figure(
    "convergence-types",
    "shares of trials that end globally, locally or not locally optimal, against d",
    statement="experiment: global, local and other convergence against the dimension",
    published="bars of these shares and of data sets whose tokens are all support tokens",
    sizes={
        "quick": {"seeds": 20, "steps": 1500, "dimensions": (2, 4, 8, 20)},
        "small": {"seeds": 40, "steps": 2000, "dimensions": (2, 4, 6, 10, 20)},
        "paper": {"seeds": 100, "steps": 2000, "dimensions": (2, 4, 6, 8, 10, 20, 50, 100)},
    },
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "How training ends on {data_sets} data sets of random unit tokens, against the dimension "
        "d; W left, (K, Q) right in each pair. Counted are trials whose attention has settled on "
        "one token of every sequence (weight 0.99): at the globally optimal tokens; at other "
        "tokens that are locally optimal, by the support tokens of the solution in the Frobenius "
        "norm for W and in the nuclear norm for (K, Q); at tokens that are not; and trials that "
        "have not settled. Black marks: trials that attend most to the optimal tokens, settled or "
        "not; at d = {narrowest} and {widest}, {ends}. Bottom: data sets whose optimal tokens a "
        "matrix separates, and those where all other tokens are support tokens of its Frobenius "
        "solution, with Wilson's 95 % intervals; in the latter, only optimal tokens are locally "
        "optimal."
    ),
)
