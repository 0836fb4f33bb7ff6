"""Can the optimal tokens be selected, and does training select them? Over n/d, T/d and d.

Every number and picture of that section of docs/maps.md::

    python examples/sweeps/selection_map.py --stores maps --workers 2

What is done stays in the stores, and the same command goes on; what is there is then averaged,
fitted and drawn. ``--sweep transition_32_64`` runs one sweep alone, ``--sweep none`` only draws.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator
from scipy.special import ndtr
from selection_capacity import pooled_tokens, selection_capacity

import attractor as at
from attractor import plots
from attractor.support.storage import save_netcdf

DIMENSIONS = (4, 8, 16, 32)
PER_D = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
TOKENS_PER_D = [0.5, 1.0, 2.0, 4.0]
TOKENS = {
    4: [2, 4, 8, 16, 32],
    8: [2, 4, 8, 16, 32],
    16: [2, 4, 8, 16, 32, 64],
    32: [16, 64],
}
LOADS = {4: (0.2, 2.2, 21), 8: (0.6, 1.5, 16), 16: (0.88, 1.16, 8), 32: (0.97, 1.03, 3)}
"""First, last and number of loads, n over the capacity predicted, around the transition of a d."""
DATA_SETS = {
    "feasible": {4: 200, 8: 100, 16: 24, 32: 6},
    "reached": {4: 300, 8: 180, 16: 48, 32: 12},
    "transition": {4: 500, 8: 250, 16: 100, 32: 6},
}
"""Data sets at every point: fewer where they are dear."""
LOOKS = dict(zip(DIMENSIONS, zip(plots.COLORS.values(), "os^D", strict=False), strict=True))


def loads_of(d: int) -> list[float]:
    """Numbers of sequences over the number predicted for half of the data sets."""
    return np.round(np.linspace(*LOADS[d]), 12).tolist()


def around_half(T: int, d: int) -> list[int]:
    """Numbers of sequences at the loads of a d, rounded to whole ones."""
    return [max(1, round(load * selection_capacity(T) * d**2)) for load in loads_of(d)]


def sweeps() -> dict[str, tuple[at.maps.sweeps.Grid, at.maps.sweeps.Experiment]]:
    """Every sweep by its name: its grid and its experiment."""
    found = {}
    for d in DIMENSIONS:
        chunk = {4: 5000, 8: 1000, 16: 20, 32: 4}[d]
        margins = at.maps.sweeps.built_in("margins", d=d)
        sizes = {"T_per_d": TOKENS_PER_D, "n_per_d": PER_D}
        found[f"feasible_{d}"] = (
            at.maps.sweeps.Grid(sizes, DATA_SETS["feasible"][d], chunk=chunk),
            margins,
        )
        for T in TOKENS[d]:
            found[f"transition_{d}_{T}"] = (
                at.maps.sweeps.Grid(
                    {"n": sorted(set(around_half(T, d)))},
                    DATA_SETS["transition"][d],
                    chunk=2 if d == 32 else chunk,
                ),
                at.maps.sweeps.built_in("margins", T=T, d=d),
            )
        # Beyond 4 d sequences, and beyond d at d = 32, training takes too long.
        most = 1.0 if d == 32 else 4.0
        trained = at.maps.sweeps.built_in(
            "train_and_verify",
            d=d,
            learning_rate=1.0,
            horizons=[1000, 3000],
        )
        found[f"reached_{d}"] = (
            at.maps.sweeps.Grid(
                sizes | {"n_per_d": [one for one in PER_D if one <= most]},
                DATA_SETS["reached"][d],
                chunk=chunk,
            ),
            trained,
        )
    return found


def averages(
    stores: Path, kind: str, of: str, step: int | None = None, **labels: str
) -> xr.Dataset:
    """The averages of one sweep of every d, side by side; at a horizon, named by its place."""
    found = []
    for d in DIMENSIONS:
        data = at.maps.sweeps.open_sweep(stores / f"{kind}_{d}.zarr")
        axes = [str(name) for name in data[of].dims if name not in ("instance", "seed", "step")]
        point = {} if step is None else {"step": int(data["step"][step])}
        one = at.maps.sweeps.average_trials(data, of, axes, at=point)
        found.append(one.expand_dims(d=[d], **{name: [text] for name, text in labels.items()}))
    return _beside(found, "d")


def _beside(parts: list[xr.Dataset], axis: str) -> xr.Dataset:
    """Averages beside each other; points that some do not have count as without trials."""
    every = xr.concat(parts, axis, combine_attrs="override", join="outer")
    return every.assign({name: every[name].fillna(0) for name in ("measured", "trials")})


def maps(stores: Path) -> xr.Dataset:
    """Probabilities over n/d, T/d and d; of training also at the horizon before the last."""
    return _beside(
        [
            averages(stores, "feasible", "feasible", probability="feasible"),
            *(
                averages(stores, "reached", of, step, probability=of + later)
                for of in ("as_predicted", "locally_optimal")
                for step, later in ((-1, ""), (-2, "_earlier"))
            ),
        ],
        "probability",
    )


def transitions(stores: Path) -> tuple[xr.Dataset, xr.Dataset]:
    """Feasibility around its transition; half-way points and widths, measured and predicted."""
    found = []
    for d in DIMENSIONS:
        lines = []
        for T in TOKENS[d]:
            data = at.maps.sweeps.open_sweep(stores / f"transition_{d}_{T}.zarr")
            line = at.maps.sweeps.average_trials(data, "feasible", ["n"]).sel(n=around_half(T, d))
            line = line.assign_coords(n=loads_of(d)).rename(n="n_per_capacity")
            lines.append(line.expand_dims(d=[d], T=[T]))
        found.append(_beside(lines, "T"))
    around = _beside(found, "d")
    capacity = xr.DataArray(
        [selection_capacity(int(T)) for T in around["T"].values], {"T": around["T"].values}
    )
    n = around["n_per_capacity"] * around["d"] ** 2 * capacity
    around = around.assign_coords(n=np.maximum(1, np.rint(n)))
    fits = at.maps.sweeps.transition(around, "n_per_capacity", positions="n", scale="log")
    spread = xr.DataArray(
        [relative_spread(int(T)) for T in around["T"].values], {"T": around["T"].values}
    )
    return around, fits.assign(
        half_predicted=capacity * fits["d"] ** 2, width_predicted=spread / fits["d"]
    )


def reached_transitions(stores: Path) -> xr.Dataset:
    """Half-way points in n of whether training reaches the optimal selection."""
    found = averages(stores, "reached", "as_predicted", -1)
    found = found.assign_coords(n=found["n_per_d"] * found["d"])
    return at.maps.sweeps.transition(found, "n_per_d", positions="n", scale="log")


def relative_spread(T: int) -> float:
    """Predicted standard deviation of log n of the transition, times d."""
    pooled = pooled_tokens(T)
    k = np.arange(len(pooled))
    mean = pooled @ k
    return float(np.sqrt((pooled @ k**2 - mean**2) / mean))


def limits(fits: xr.Dataset, power: int) -> list[dict[str, Any]]:
    """Half-way points over predicted ones as d grows: lines in d^-power, by least squares."""
    found = []
    ratio = fits["half"] / fits["half_predicted"]
    error = fits["half"].copy(data=_error(fits))
    paths = [(f"T = {T}", {d: T for d in DIMENSIONS}) for T in fits["T"].values]
    paths += [(f"T = {r:g} d", {d: int(r * d) for d in DIMENSIONS}) for r in TOKENS_PER_D]
    for name, sizes in paths:
        known = [
            (d**-power, float(ratio.sel(d=d, T=T)), float(error.sel(d=d, T=T)))
            for d, T in sizes.items()
            if d >= 8 and T in fits["T"] and np.isfinite(error.sel(d=d, T=T))
        ]
        if len(known) < 2:
            continue
        x, y, sigma = np.array(known).T
        rows = np.column_stack([np.ones_like(x), x]) / sigma[:, None]
        covariance = np.linalg.inv(rows.T @ rows)
        limit, slope = covariance @ rows.T @ (y / sigma)
        misfit = float(((rows @ [limit, slope] - y / sigma) ** 2).sum())
        half = 1.959964 * float(np.sqrt(covariance[0, 0]))
        found.append(
            {"path": f"{name}, 1/d^{power}", "limit": limit, "low": limit - half,
             "high": limit + half, "slope": slope, "points": len(x), "chi_squared": misfit}
        )  # fmt: skip
    return found


def _error(fits: xr.Dataset) -> np.ndarray:
    """Standard errors of logarithms of half-way points, from their 95 % intervals."""
    return np.log(fits["half_high"].values / fits["half_low"].values) / (2 * 1.959964)


def exponents(halves: xr.Dataset) -> list[dict[str, float]]:
    """Powers of d that half-way points grow with, by least squares on logarithms."""
    found = []
    for ratio in halves["T_per_d"].values:
        one = halves.sel(T_per_d=ratio)
        sigma = _error(one)
        known = np.isfinite(sigma)
        rows = np.column_stack([np.ones(len(sigma)), np.log(one["d"].values)]) / sigma[:, None]
        covariance = np.linalg.inv(rows[known].T @ rows[known])
        y = np.log(one["half"].values) / sigma
        _, power = covariance @ rows[known].T @ y[known]
        half = 1.959964 * float(np.sqrt(covariance[1, 1]))
        found.append({"T_per_d": ratio, "power": power, "low": power - half, "high": power + half})
    return found


def map_figure(data: xr.Dataset) -> Figure:
    """Three probabilities for each d, with the predicted half-way line of the first."""
    rows = {
        "feasible": "some matrix selects\nthe optimal tokens",
        "as_predicted": "training reaches\nthe optimal tokens",
        "locally_optimal": "what training reaches\nis locally optimal",
    }
    figure = Figure(figsize=(plots.PAGE, 4.9))
    panels = figure.subplots(3, 4, sharex=True, sharey=True)
    x, y = data["n_per_d"].values, data["T_per_d"].values
    image = None
    for row, (name, words) in enumerate(rows.items()):
        for column, d in enumerate(DIMENSIONS):
            axes = panels[row, column]
            one = data.sel(probability=name, d=d).transpose("T_per_d", "n_per_d", ...)
            mean = np.ma.masked_invalid(one["mean"].values)
            axes.set_facecolor("#dddddd")
            image = axes.pcolormesh(
                _edges(x), _edges(y), mean, vmin=0, vmax=1, cmap="viridis", rasterized=True
            )
            axes.set(xscale="log", yscale="log", xlim=_edges(x)[[0, -1]], ylim=_edges(y)[[0, -1]])
            axes.grid(False)
            if name == "feasible":
                T = np.arange(2, int(y[-1] * d * 1.5) + 1)
                line = [selection_capacity(int(one)) * d for one in T]
                axes.plot(line, T / d, color="white", linewidth=1.4, zorder=2)
            for (at_y, at_x), value in np.ndenumerate(one["mean"].values):
                if np.isfinite(value) and 0.005 < value < 0.995:
                    color = "white" if value < 0.6 else plots.COLORS["black"]
                    axes.text(
                        x[at_x], y[at_y], f"{value:.2f}".lstrip("0"),
                        ha="center", va="center", color=color, fontsize=5.5, zorder=3,
                    )  # fmt: skip
            for axis, values in ((axes.xaxis, x), (axes.yaxis, y)):
                axis.set_minor_locator(NullLocator())
                axis.set_minor_formatter(NullFormatter())
                axis.set_ticks(values, [f"{value:g}" for value in values])
            axes.tick_params(axis="x", labelrotation=60, labelsize=6)
            if not row:
                axes.set_title(f"$d$ = {d}")
        panels[row, 0].set_ylabel(f"{words}\n\n$T/d$")
    for axes in panels[-1]:
        axes.set_xlabel("$n/d$")
    bar = figure.colorbar(image, ax=panels, pad=0.02, aspect=30)  # pyright: ignore
    bar.set_label("probability over data sets; white line: predicted half, $n = \\alpha(T)\\,d^2$")
    return figure


def _edges(values: np.ndarray) -> np.ndarray:
    """Borders of cells around numbers, on a logarithmic axis."""
    middle = np.sqrt(values[1:] * values[:-1])
    return np.concatenate([values[:1] ** 2 / middle[:1], middle, values[-1:] ** 2 / middle[-1:]])


def transition_figure(around: xr.Dataset, fits: xr.Dataset) -> Figure:
    """The collapse, the capacity over T, its way to the prediction, and the widths."""
    figure = Figure(figsize=(plots.PAGE, 5.0))
    panels = figure.subplots(2, 2)
    collapse, capacity, ratio, width = panels.ravel()
    z = np.linspace(-4.5, 4.5, 200)
    collapse.plot(z, ndtr(-z), color=plots.COLORS["black"], linewidth=0.9, label="$\\Phi(-z)$")
    T = np.arange(2, fits["T"].values.max() + 1)
    curve = [selection_capacity(int(one)) for one in T]
    capacity.plot(T, curve, color=plots.COLORS["black"], linewidth=0.9, label="predicted")
    for d in DIMENSIONS:
        color, marker = LOOKS[d]
        one, points = fits.sel(d=d), around.sel(d=d)
        look: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none"}
        far = (points["n"] / one["half"]).transpose("T", "n_per_capacity")
        z_of = np.log(far.values) / one["width_predicted"].values[:, None]
        mean = points["mean"].transpose("T", "n_per_capacity").values
        known = np.isfinite(mean) & np.isfinite(z_of)
        collapse.plot(
            z_of[known], mean[known],
            markersize=2.4, alpha=0.7, label=f"$d$ = {d}", **look,
        )  # fmt: skip
        shift = 1.0 + 0.04 * (DIMENSIONS.index(d) - 1.5)
        places = one["T"].values * shift
        if 2 / d > 0.2:
            capacity.axhline(2 / d, color=color, linewidth=0.9, linestyle=":", zorder=1)
        for axes, of, unit in (
            (capacity, "half", d**2),
            (ratio, "half", one["half_predicted"]),
            (width, "width", one["width_predicted"]),
        ):
            value = one[of] / unit
            away = [abs(value - one[f"{of}_{end}"] / unit) for end in ("low", "high")]
            axes.errorbar(
                places, value, away, markersize=3.2, elinewidth=0.9, label=f"$d$ = {d}", **look
            )
    for axes in (capacity, ratio, width):
        axes.set(xscale="log", xlabel="tokens $T$")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(fits["T"].values, [f"{value:g}" for value in fits["T"].values])
        if axes is not capacity:
            axes.axhline(1, color=plots.COLORS["black"], linewidth=0.9)
    capacity.set(yscale="log", ylabel="half-way point $n^*/d^2$", title="capacity")
    capacity.yaxis.set_minor_formatter(NullFormatter())
    capacity.set_yticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
    ratio.set(ylabel="$n^*$ / predicted", title="half-way point over the prediction")
    width.set(ylabel="width / predicted", title="width over the prediction", ylim=(0.4, 2.0))
    collapse.set(
        xlabel="$z = \\ln(n/n^*)\\,d\\,/s(T)$, $s$ predicted", ylabel="probability of feasibility",
        title="collapse of every $T$ and $d$",
    )  # fmt: skip
    collapse.set_xlim(-4.5, 4.5)
    collapse.legend(fontsize=6)
    capacity.legend(fontsize=6)
    return figure


def _interval(row: dict[Any, Any], name: str, unit: float) -> str:
    """A number with its interval, in a unit."""
    value, low, high = (row[name + end] / unit for end in ("", "_low", "_high"))
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"


def main() -> None:
    """Runs the sweeps, then averages, fits and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", type=Path, default=Path("maps"))
    parser.add_argument("--out", type=Path, default=Path("maps"), help="for averages and pictures")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--sweep", action="append", help="the name of a sweep; default: all")
    given = parser.parse_args()
    every = sweeps()
    for name in given.sweep or every:
        if name != "none":
            grid, experiment = every[name]
            store = given.stores / f"{name}.zarr"
            print(name, at.maps.sweeps.sweep(grid, experiment, store, given.workers, progress=True))
    if given.sweep and "none" not in given.sweep:
        return
    data, (around, fits) = maps(given.stores), transitions(given.stores)
    save_netcdf(data, given.out / "selection_map.nc")
    save_netcdf(xr.merge([around, fits], combine_attrs="override"), given.out / "capacity.nc")
    with plots.style():
        map_figure(data).savefig(given.out / "selection_map.png", dpi=200)
        transition_figure(around, fits).savefig(given.out / "capacity.png", dpi=200)
    for row in fits.to_dataframe().dropna(subset="half").reset_index().to_dict("records"):
        size, half = row["d"] ** 2, row["half_predicted"]
        print(
            f"d {row['d']:2d} T {row['T']:2d}: n*/d^2 {_interval(row, 'half', size)}, over "
            f"predicted {_interval(row, 'half', half)}; width {row['width'] * row['d']:.3f}/d, "
            f"over predicted {_interval(row, 'width', row['width_predicted'])}"
        )
    for line in limits(fits, 1) + limits(fits, 2):
        print(
            "limit", {k: v if isinstance(v, str) else round(float(v), 4) for k, v in line.items()}
        )
    halves = reached_transitions(given.stores)
    print(halves.to_dataframe().round(3).to_string())
    for line in exponents(halves):
        print("reached", {name: round(float(value), 3) for name, value in line.items()})


if __name__ == "__main__":
    main()
