"""Does a step size that falls keep an optimizer with memory in its norm?

Numbers and pictures of that section of docs/maps.md, from the stores of the plans
``decay_*.toml`` and ``newton_schulz.toml``::

    python examples/sweeps/decay.py maps --out maps
    python examples/sweeps/decay.py maps --out maps --refine   # thresholds once more, finer

Fixed beforehand: the threshold is the step size at the first step from which on the mean margin
ratio over data sets, in the norm of the optimizer without memory, is below 0.75 for good; its
interval is a bootstrap over data sets. A decay removes the threshold if it lies beyond the largest
step size that was tried. Thresholds of constant step sizes are measured again on finer grids, of
five step sizes, each 1.2 times the one before, around that of the plan.
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

LEVEL = 0.75
MEMORIES = {
    "sign_momentum": ("sign momentum, l_inf", ("decay",)),
    "lion": ("Lion, l_inf", ("b1", "b2")),
    "muon": ("Muon with exact factors, spectral", ("momentum",)),
    "adam": ("Adam, eps = 0, l_inf", ("b1", "b2")),
}
RATE, EXPONENT = "learning_rate", "learning_rate_exponent"


def thresholds(results: xr.Dataset, memory: tuple[str, ...]) -> xr.Dataset:
    """Where the mean ratio falls below the level for good, by decay, memory and horizon."""
    return at.maps.sweeps.crossings(
        results, "margin_ratio", RATE, [EXPONENT, *memory, "step"], level=LEVEL, side="below"
    )


def print_thresholds(name: str, found: xr.Dataset, medians_of: xr.Dataset) -> None:
    """A line for each decay, memory and horizon."""
    flat = found[["mean", "low", "high"]].to_dataframe()
    best = medians_of["median"].max(RATE)
    for key, row in flat.iterrows():
        point = dict(zip(found["mean"].dims, key, strict=True))
        highest = float(best.sel(point))
        words = ", ".join(f"{axis} {value:g}" for axis, value in point.items())
        print(
            f"{name}: {words}: {row['mean']:.3g} [{row['low']:.3g}, {row['high']:.3g}], "
            f"highest median {highest:.3f}"
        )


def refined(name: str, coarse: xr.Dataset, folder: Path) -> xr.Dataset:
    """Thresholds of constant steps at the last horizon, on grids around those of the plan."""
    plan = at.maps.sweeps.load_plan(Path(__file__).parent / f"decay_{name}.toml")
    last = coarse.isel(step=-1).sel({EXPONENT: [0.0]})
    found = last[["mean", "low", "high"]].copy(deep=True)
    for point in np.ndindex(last["mean"].shape):
        middle = float(last["mean"].values[point])
        if not np.isfinite(middle):
            continue
        place = dict(zip(last["mean"].dims, point, strict=True))
        rates = [float(f"{middle * 1.2**k:.4g}") for k in range(-2, 3)]
        axes = {RATE: rates} | {axis: [last[axis].values[k].item()] for axis, k in place.items()}
        grid = at.maps.sweeps.Grid(axes, instances=plan.grid.instances, chunk=plan.grid.chunk)
        own = folder / f"decay_{name}-{'-'.join(map(str, point))}.zarr"
        settings = dict(plan.experiment.settings) | {"horizons": [int(last["step"])]}
        experiment = at.maps.sweeps.built_in("train_and_verify", **settings)
        at.maps.sweeps.sweep(grid, experiment, own, cluster=2, progress=True)
        fine = at.maps.sweeps.crossings(
            at.maps.sweeps.open_sweep(own), "margin_ratio", RATE, [], level=LEVEL, side="below"
        )
        for end in found.data_vars:
            found[end].values[point] = float(fine[end])
    return found


def figure_of(found: dict[str, xr.Dataset]) -> Figure:
    """Median ratios over the step size at the first step, a row for each memory."""
    rows = len(found)
    figure = Figure(figsize=(plots.PAGE, 1.9 * rows), layout="constrained")
    columns = max(ratios[EXPONENT].size for ratios in found.values())
    panels = figure.subplots(rows, columns, sharey=True, sharex="row", squeeze=False)
    colors = list(plots.COLORS.values())
    for line, (name, ratios) in zip(panels, found.items(), strict=True):
        title, memory = MEMORIES[name]
        last = ratios.isel(step=-1).stack(memory=memory)
        for axes, exponent in zip(line, last[EXPONENT].values, strict=False):
            for k, values in enumerate(last["memory"].values):
                own = last.sel({EXPONENT: exponent}).isel(memory=k)
                label = ", ".join(f"{v:g}" for v in np.atleast_1d(np.array(values, float)))
                axes.plot(own[RATE], own["median"], color=colors[k], marker=".", label=label)
                axes.fill_between(
                    own[RATE], own["low"], own["high"], color=colors[k], alpha=0.2, linewidth=0
                )
            axes.set(xscale="log", ylim=(0, 1.04))
            axes.set_title(rf"$\eta_0\,t^{{-{exponent:g}}}$" if exponent else "constant")
            axes.axhline(LEVEL, color=plots.COLORS["gray"], linewidth=0.6, linestyle=":")
        for axes in line[last[EXPONENT].size :]:
            axes.set_axis_off()
        line[0].set_ylabel(title, fontsize=7)
        beside = line[min(last[EXPONENT].size, columns - 1)]  # where no curve passes
        beside.legend(
            *line[0].get_legend_handles_labels(), title=", ".join(memory),
            loc="upper left", fontsize=6, title_fontsize=6,
        )  # fmt: skip
    figure.supxlabel(r"step size $\eta_0$ at the first step", fontsize=8)
    return figure


def iterations_figure(ratios: xr.Dataset) -> Figure:
    """Median ratios over the number of iterations, a panel for each step size."""
    last = ratios.isel(step=-1)
    figure = Figure(figsize=(plots.PAGE, 2.6), layout="constrained")
    panels = figure.subplots(1, last[RATE].size, sharey=True)
    looks = zip(plots.COLORS.values(), "os^", strict=False)
    for name, (color, marker) in zip(last["coefficients"].values, looks, strict=False):
        for axes, rate in zip(panels, last[RATE].values, strict=True):
            own = last.sel({"coefficients": name, RATE: rate})
            errors = np.abs(np.stack([own["low"], own["high"]]) - own["median"].values)
            places = own["newton_schulz_iterations"]
            axes.errorbar(
                places, own["median"], errors, color=color, marker=marker, markersize=4, label=name
            )
            axes.axhline(1, color=plots.COLORS["gray"], linewidth=0.7, linestyle=":")
            axes.set(title=f"step size {rate:g}", ylim=(0.4, 1.03), xticks=places)
    panels[0].set_ylabel("margin ratio, spectral")
    panels[-1].legend(fontsize=7, loc="upper right")
    figure.supxlabel("Newton-Schulz iterations", fontsize=8)
    return figure


def main() -> None:
    """Averages, prints and draws what there is of the stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", type=Path, help="folder of the stores")
    parser.add_argument("--out", type=Path, default=Path("maps"), help="for numbers and pictures")
    parser.add_argument("--refine", action="store_true", help="thresholds once more, finer")
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    drawn = {}
    for name, (_, memory) in MEMORIES.items():
        store = given.stores / f"decay_{name}.zarr"
        if not store.exists():
            continue
        status = at.maps.sweeps.sweep_status(store)
        if status.done < status.chunks:
            print(f"{name}: {status.done} of {status.chunks} chunks are there; left out")
            continue
        results = at.maps.sweeps.open_sweep(store)
        found, ratios = thresholds(results, memory), medians(results["margin_ratio"].load())
        print_thresholds(name, found, ratios)
        if given.refine:
            fine = refined(name, found, given.stores)
            print_thresholds(f"{name}, finer", fine, ratios.isel(step=-1))
            fine = fine.squeeze(EXPONENT, drop=True)
            found = found.merge(fine.rename({end: f"finer_{end}" for end in fine.data_vars}))
        kept = xr.merge([ratios, found.rename({n: f"threshold_{n}" for n in found.data_vars})])
        kept.attrs = {"data_sets": results.sizes["instance"], "n": 6, "T": 8, "d": 10}
        save_netcdf(kept, given.out / f"decay_{name}.nc")
        drawn[name] = ratios
    iterations = given.stores / "newton_schulz.zarr"
    if iterations.exists():
        ratios = medians(at.maps.sweeps.open_sweep(iterations)["margin_ratio"].load())
        best = ratios.isel(step=-1).sel({RATE: 0.03})
        print(best.reset_coords(drop=True).to_dataframe().round(3))
        ratios.attrs = {"data_sets": 200, "n": 6, "T": 8, "d": 10}
        save_netcdf(ratios, given.out / "newton_schulz.nc")
        with plots.style():
            iterations_figure(ratios).savefig(given.out / "newton_schulz.png", dpi=200)
    if drawn:
        with plots.style():
            figure_of(drawn).savefig(given.out / "decay.png", dpi=200)


if __name__ == "__main__":
    main()
