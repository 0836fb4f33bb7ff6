"""Which norm of W = K Q^T does an optimizer of keys and queries favor, and does the gauge matter?

Numbers and picture of that section of docs/maps.md, from the store of ``factors.toml``::

    python examples/sweeps/factors.py factors.zarr --out maps

What is compared was decided before any of it was run. In each norm: the median margin ratio over
data sets, with an interval that holds for any distribution. Of each turned start and the plain
one, for the same data set: how far their ratios are apart in the median, in how many data sets
by more than 0.01, and whether one lies above the other more often than a coin would say, by a sign
test in which differences below 1e-9 do not count, at 5 % for all comparisons together (Bonferroni).
As rounding grows along some paths, a control changes every number of the start by one rounding.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from medians import medians
from scipy.stats import binomtest

import attractor as at
from attractor import plots
from attractor.support.storage import save_netcdf

NAMES = {
    "normalized gradient descent": "gradient descent, normalized",
    "spectral descent": "spectral, each factor",
    "composed spectral descent": "spectral, of the product",
    "composed spectral descent:method=scaled": "spectral, of the product, scaled",
    "sign descent": "sign descent",
    "adam": "Adam, eps = 0",
}
LOOKS = dict(zip(NAMES, zip(plots.COLORS.values(), "os^Dv<", strict=False), strict=True))
SAME, APART = 1e-9, 0.01


def gauges(ratio: xr.DataArray) -> xr.Dataset:
    """Turned starts beside the plain one, data set by data set."""
    turned = ratio.sel(gauge=ratio["gauge"] > 0)
    moved = turned - ratio.sel(gauge=0, drop=True)
    counted = np.abs(moved) > SAME
    known = moved.notnull().sum("instance")
    p = xr.apply_ufunc(
        lambda more, of: binomtest(int(more), int(of)).pvalue if of else 1.0,
        (moved > SAME).sum("instance"), counted.sum("instance"), vectorize=True,
    )  # fmt: skip
    share = (np.abs(moved) > APART).sum("instance") / known.where(known > 0)
    return medians(np.abs(moved)).assign(
        share_apart=share, p=p, higher=(moved > SAME).sum("instance")
    )


def figure_of(ratios: xr.Dataset, moved: xr.Dataset) -> Figure:
    """Ratios in the three norms over the step size, and what turning the start changes."""
    figure = Figure(figsize=(plots.PAGE, 5.6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).ravel()
    titles = {"frobenius": "Frobenius norm", "nuclear": "nuclear norm", "spectral": "spectral norm"}
    rates = ratios["learning_rate"].values
    for k, (name, (color, marker)) in enumerate(LOOKS.items()):
        shift = 1.05 ** (k - 2.5)
        look = {"color": color, "marker": marker, "markersize": 4, "linewidth": 1.1}
        for axes, norm in zip(panels, titles, strict=False):
            own = ratios.sel(optimizer=name, geometry=norm, gauge=0)
            errors = np.abs(np.stack([own["low"], own["high"]]) - own["median"].values)
            axes.errorbar(rates * shift, own["median"], errors, **look, elinewidth=0.9)
        own = moved.sel(optimizer=name, geometry="frobenius").max("gauge")["median"]
        panels[3].plot(rates * shift, own.clip(min=1e-16), **look)
    for axes, title in zip(panels, titles.values(), strict=False):
        axes.axhline(1, color=plots.COLORS["gray"], linewidth=0.7, linestyle=":")
        axes.set(title=f"Margin ratio, {title} of W", ylim=(0, 1.04), xscale="log")
    panels[3].set(title="Change of the ratio by turning the start", yscale="log", ylim=(1e-16, 1))
    for axes in panels[2:]:
        axes.set_xlabel("step size")
    for axes in panels:
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.minorticks_off()
    handles = [
        Line2D([], [], color=color, marker=marker, markersize=4, label=NAMES[name])
        for name, (color, marker) in LOOKS.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def control(data_sets: int = 50, steps: int = 1000) -> None:
    """What a turn of the start changes, beside what changing every number by a rounding does."""
    tokens, head = at.datasets.unit_tokens(6, 8, 10, seeds=data_sets)
    signs = np.random.default_rng(0)
    settings: dict[str, Any] = {"steps": steps, "record": [0, steps], "weights": "all"}

    def ratios(optimizer: at.Optimizer, layer: at.KeyQuery, **start: Any) -> tuple:
        run = at.train(tokens, head, optimizer, parameterization=layer, **settings, **start)
        verdict = at.verify(run, geometry="frobenius").data
        return run.data, verdict["margin_ratio"].isel(seed=0, step=-1).values

    for make in (
        at.normalized_gradient_descent, at.spectral_descent, at.composed_spectral_descent
    ):  # fmt: skip
        for rate in (0.01, 0.03, 0.1):
            begun, plain = ratios(make(rate), at.KeyQuery())
            rounded = {
                name: start * (1 + 2.0**-52 * signs.choice([-1, 0, 1], start.shape))
                for name in "KQ"
                for start in [begun[name].isel(step=0).values]
            }
            _, turned = ratios(make(rate), at.KeyQuery(gauge=1))
            _, jittered = ratios(make(rate), at.KeyQuery(), initial=rounded)
            found = [f"{np.median(np.abs(one - plain)):.1e}" for one in (turned, jittered)]
            print(
                f"{make.__name__}, {rate:g}, {steps} steps: gauge {found[0]}, rounding {found[1]}"
            )


def main() -> None:
    """Averages, tests, prints and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--out", type=Path, default=Path("maps"), help="for numbers and picture")
    given = parser.parse_args()
    control()
    results = at.maps.sweeps.open_sweep(given.store)
    ratio = results["margin_ratio"].isel(seed=0, drop=True).load()
    ratios, moved = medians(ratio), gauges(ratio)
    comparisons = int(moved["p"].isel(step=-1).size)
    steps = ratio["step"].values
    print(f"sign tests: significant below {0.05 / comparisons:.1e}, {comparisons} comparisons")
    for name in ratio["optimizer"].values:
        for rate in ratio["learning_rate"].values:
            point = {"optimizer": name, "learning_rate": rate}
            parts = []
            for norm in ratio["geometry"].values:
                own = ratios.sel(point | {"geometry": norm, "gauge": 0})
                end, before = own.isel(step=-1), own.isel(step=-2)
                parts.append(
                    f"{norm} {float(before['median']):.3f} -> {float(end['median']):.3f} "
                    f"[{float(end['low']):.3f}, {float(end['high']):.3f}]"
                )
            print(f"{name}, {rate:g}, {steps[-2]} -> {steps[-1]} steps: {'; '.join(parts)}")
            for norm in ratio["geometry"].values:
                own = moved.sel(point | {"geometry": norm}).isel(step=-1)
                texts = [
                    f"gauge {gauge}: {float(one['median']):.1e} [{float(one['low']):.1e}, "
                    f"{float(one['high']):.1e}], apart {float(one['share_apart']):.3f}, "
                    f"higher in {int(one['higher'])}, p = {float(one['p']):.2g}"
                    for gauge, one in ((int(g), own.sel(gauge=g)) for g in own["gauge"].values)
                ]
                print(f"    {norm}: {'; '.join(texts)}")
    given.out.mkdir(exist_ok=True)
    kept = ratios.rename({name: f"ratio_{name}" for name in ratios})
    turned = moved.rename({name: f"turned_{name}" for name in moved}).rename(gauge="turned_gauge")
    kept.attrs = {"data_sets": ratio.sizes["instance"], "n": 6, "T": 8, "d": 10}
    save_netcdf(xr.merge([kept, turned]), given.out / "factors.nc")
    with plots.style():
        figure_of(ratios.isel(step=-1), moved.isel(step=-1)).savefig(
            given.out / "factors.png", dpi=200
        )


if __name__ == "__main__":
    main()
