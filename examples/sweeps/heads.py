"""Muon on several attention heads: each head made orthogonal by itself, or all of them joined?

Numbers and picture of that section of docs/maps.md, from the store of ``heads_muon.toml``::

    python examples/sweeps/heads.py heads_muon.zarr --out maps

Compared in two norms: the largest spectral norm of a head, which steps of a head each are steepest
in, and the spectral norm of all heads side by side, which joined steps are steepest in. Fixed
beforehand: the median margin ratio over data sets in each, with an interval that holds for any
distribution, and data set by data set the difference of the two ways in the norm of either.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from medians import medians

import attractor as at
from attractor import plots
from attractor.support.storage import save_netcdf

STEPS = {"muon:method=exact": "of each head", "muon:joined=true,method=exact": "joined"}
NORMS = {
    "block diagonal": "largest spectral norm of a head",
    "side by side": "spectral norm of all side by side",
}


def named(ratio: xr.DataArray) -> xr.DataArray:
    """Ratios by number of heads, with words for the two ways and the two norms."""
    return ratio.rename(
        parameterization="heads", optimizer="steps", arrangement="norm"
    ).assign_coords(
        heads=[int(str(name).split()[0]) for name in ratio["parameterization"].values],
        steps=[STEPS[str(name)] for name in ratio["optimizer"].values],
        norm=[NORMS[str(name)] for name in ratio["arrangement"].values],
    )


def figure_of(found: xr.Dataset) -> Figure:
    """Median ratios over the dimension, a panel for each norm and number of heads."""
    last = found.isel(step=-1)
    several = last["heads"].values[last["heads"].values > 1]
    figure = Figure(figsize=(plots.PAGE, 4.2), layout="constrained")
    panels = figure.subplots(len(NORMS), len(several), sharex=True, sharey=True)
    looks = list(zip(plots.COLORS.values(), "os", strict=False))
    for row, norm in zip(panels, NORMS.values(), strict=True):
        for axes, heads in zip(row, several, strict=True):
            for (color, marker), steps in zip(looks, STEPS.values(), strict=True):
                own = last.sel(norm=norm, heads=heads, steps=steps)
                errors = np.abs(np.stack([own["low"], own["high"]]) - own["median"].values)
                axes.errorbar(
                    own["d"], own["median"], errors, color=color, marker=marker, markersize=4,
                    label=f"steps {steps}",
                )  # fmt: skip
            axes.set(title=f"{heads} heads", ylim=(0.5, 1.02), xscale="log")
            axes.set_xticks(own["d"].values, [str(d) for d in own["d"].values], minor=False)
            axes.minorticks_off()
        row[0].set_ylabel(f"margin ratio,\n{norm}", fontsize=7)
    panels[0, 0].legend(fontsize=7, loc="lower right")
    figure.supxlabel("d, dimension of a token", fontsize=8)
    return figure


def main() -> None:
    """Averages, prints, compares and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, help="store of heads_muon.toml")
    parser.add_argument("--out", type=Path, default=Path("maps"), help="for numbers and pictures")
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    ratio = named(at.maps.sweeps.open_sweep(given.store)["margin_ratio"].load())
    found = medians(ratio)
    print(found.isel(step=-1, drop=True).to_dataframe().round(3).unstack("d").to_string())
    last = ratio.isel(step=-1, seed=0, drop=True)
    lead = last.sel(steps="of each head") - last.sel(steps="joined")
    share = (lead > 0).mean("instance").rename("share of data sets where steps of each head lead")
    print(share.to_dataframe().round(3).unstack("d").to_string())
    found["lead"] = share
    found.attrs = {"data_sets": ratio.sizes["instance"], "n": 6, "T": 8, "learning_rate": 0.03}
    save_netcdf(found, given.out / "heads_muon.nc")
    with plots.style():
        figure_of(found).savefig(given.out / "heads_muon.png", dpi=200)


if __name__ == "__main__":
    main()
