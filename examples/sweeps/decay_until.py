"""Keys and queries whose weights decay until step T and never again: where does W = K Q^T go?

Numbers and picture of that section of docs/maps.md, from the store of ``decay_until.toml``::

    python examples/sweeps/decay_until.py decay_until.zarr --out maps

Fixed beforehand, at the last step: the median margin ratio over data sets in each norm of W, for
the tokens that a run selects, with an interval that holds for any distribution; and its rank, as
the nuclear over the spectral norm, which is 1 for a matrix of rank one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure
from medians import medians

import attractor as at
from attractor import plots
from attractor.support.storage import save_netcdf

NAMES = {"normalized gradient descent": "gradient descent, normalized", "adam": "Adam, eps = 0"}
DECAY, UNTIL = "weight_decay", "weight_decay_steps"


def figure_of(found: xr.Dataset) -> Figure:
    """Nuclear ratio, and rank, over the last step with decay; a column for each start."""
    last = found.isel(step=-1)
    columns = [(name, scale) for name in NAMES for scale in last["initial_scale"].values]
    figure = Figure(figsize=(plots.PAGE, 4.0), layout="constrained")
    panels = figure.subplots(2, len(columns), sharex=True, sharey="row")
    colors = [plots.COLORS["gray"], *(c for n, c in plots.COLORS.items() if n != "gray")]
    for (above, below), (name, scale) in zip(panels.T, columns, strict=True):
        for color, decay in zip(colors, last[DECAY].values, strict=False):
            own = last.sel({"optimizer": name, "initial_scale": scale, DECAY: decay})
            nuclear = own.sel(geometry="nuclear")
            look = {"color": color, "marker": ".", "linestyle": "-" if decay else "--"}
            above.plot(own[UNTIL], nuclear["median"], label=f"{decay:g}", **look)
            above.fill_between(
                own[UNTIL], nuclear["low"], nuclear["high"], color=color, alpha=0.2, linewidth=0
            )
            below.plot(own[UNTIL], own["rank"], **look)
        above.set(xscale="log", ylim=(0, 1.02))
        above.set_title(f"{NAMES[name]},\nscale of the start {scale:g}", fontsize=7)
        below.set(ylim=(0.9, 3.2))
    panels[0, 0].set_ylabel("margin ratio, nuclear")
    panels[1, 0].set_ylabel("nuclear over spectral norm")
    panels[0, 0].legend(title="weight decay", fontsize=6, title_fontsize=6, loc="lower left")
    figure.supxlabel("last step with weight decay, of 10,000", fontsize=8)
    return figure


def main() -> None:
    """Averages, prints and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, help="store of decay_until.toml")
    parser.add_argument("--out", type=Path, default=Path("maps"), help="for numbers and pictures")
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    results = at.maps.sweeps.open_sweep(given.store)
    found = medians(results["margin_ratio"].load())
    norm = results["norm"].isel(seed=0, drop=True).load()
    rank = norm.sel(geometry="nuclear", drop=True) / norm.sel(geometry="spectral", drop=True)
    found["rank"] = rank.median("instance")
    last = found.isel(step=-1, drop=True)
    for (name, scale), one in last.stack(start=["optimizer", "initial_scale"]).groupby("start"):
        for geometry in last["geometry"].values:
            table = one.sel(geometry=geometry, drop=True)[["median", "low", "high"]]
            print(f"{name}, start of scale {scale:g}, {geometry}")
            print(table.squeeze(drop=True).to_dataframe().round(3).unstack(UNTIL).to_string())
    found.attrs = {"data_sets": results.sizes["instance"], "n": 6, "T": 8, "d": 10}
    save_netcdf(found, given.out / "decay_until.nc")
    with plots.style():
        figure_of(found).savefig(given.out / "decay_until.png", dpi=200)


if __name__ == "__main__":
    main()
