"""Divergences at the end of mirror descent from the solutions in three norms, as a table."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.mirror_descent.data import EXPONENTS, PUBLISHED_EPS
from attractor.papers.mirror_descent.figures._protocols import EXACT, PUBLISHED
from attractor.papers.mirror_descent.figures._random_data import (
    compared_with_solutions,
    limits_of_optimal_tokens,
)
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.roles import role_of
from attractor.results.paper import MIRROR_DESCENT

LIMIT = "limit: solution against solution"
OWN_TOKENS = "exact, tokens of the run itself"
STOPPED = "as published, tokens of the run itself"
OTHER_RUNS = "as published, tokens of other runs"
_SCALE = (2e-3, 0.4)
_ZERO = 1e-9
"""Below this a divergence is one of a solution from itself."""


def _compute(request: Request) -> xr.Dataset:
    blocks = {}
    if request.as_published:
        published = compared_with_solutions(request, PUBLISHED).isel(record=-1)
        blocks[OTHER_RUNS] = published["divergence_from_other_runs"]
        blocks[STOPPED] = published["divergence"]
    blocks[OWN_TOKENS] = compared_with_solutions(request, EXACT)["divergence"].isel(record=-1)
    blocks[LIMIT] = limits_of_optimal_tokens(request)
    whole = [block.reset_coords(drop=True) for block in blocks.values()]
    divergence = xr.concat(whole, dim="block").assign_coords(block=list(blocks))
    return xr.Dataset({"divergence": divergence})


def _off_diagonal(values: xr.DataArray) -> xr.DataArray:
    return values.where(values["p"] != values["solution"])


def _readings(data: xr.Dataset) -> Readings:
    median = data["divergence"].median("instance")
    exact, limit = median.sel(block=OWN_TOKENS), median.sel(block=LIMIT)
    away = np.abs(_off_diagonal(exact) / _off_diagonal(limit) - 1).max()
    own = exact.where(exact["p"] == exact["solution"]).max("solution")
    found = [
        at_most("largest relative distance of a median off the diagonal from its limit", away, 0.6),
        at_least(
            "least median off the diagonal over that on it, of the same runs",
            (_off_diagonal(exact).min("solution") / own).min(),
            2.0,
        ),
    ]
    mean = data["divergence"].mean("instance")
    if OTHER_RUNS in data["block"]:
        mixed, stopped = _off_diagonal(mean.sel(block=OTHER_RUNS)), mean.sel(block=STOPPED)
        found += [
            at_least(
                "least mean off the diagonal with tokens of other runs, over that with its own",
                (mixed / stopped).min(),
                1.5,
            ),
            at_most(
                "p = 1.75 as published: mean off the diagonal at p = 2 over that on it",
                stopped.sel(p=1.75, solution=2.0) / stopped.sel(p=1.75, solution=1.75),
                3.0,
            ),
        ]
    return Readings(*found, eps=PUBLISHED_EPS, mean=mean.sel(p=1.75, solution=2.0))


def _draw(data: xr.Dataset) -> Figure:
    blocks = [str(name) for name in data["block"].values]
    rows = len(blocks) // 2
    figure = Figure(figsize=(PAGE, 0.35 + 1.75 * rows))
    for axes, name in zip(figure.subplots(rows, 2, squeeze=False).ravel(), blocks, strict=True):
        _table(axes, data["divergence"].sel(block=name))
        axes.set_title(name)
    return figure


def _table(axes: Axes, values: xr.DataArray) -> None:
    values = values.transpose("p", "solution", "instance")
    mean, spread = values.mean("instance").values, values.std("instance").values
    axes.imshow(np.clip(mean, *_SCALE), cmap="Blues", norm=LogNorm(*_SCALE), aspect="auto")
    for (i, j), value in np.ndenumerate(mean):
        color = "white" if value > 0.06 else COLORS["black"]
        text = "0" if value < _ZERO else f"{value:.4f}\n\N{PLUS-MINUS SIGN} {spread[i, j]:.4f}"
        axes.text(j, i, text, ha="center", va="center", color=color, fontsize=7)
    places, names = range(len(EXPONENTS)), [f"$p = {p:g}$" for p in EXPONENTS]
    axes.set_xticks(places, [role_of(f"l_{p:g}").label for p in EXPONENTS])
    axes.set_yticks(places, names)
    axes.set_ylabel("mirror descent")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(False)


DIVERGENCE_TABLE = Figures(MIRROR_DESCENT).figure(
    "divergence-table",
    "how far runs end from the solutions in three norms, with the same tokens and without",
    statement="experiment: directional Bregman divergence at the end of synthetic runs",
    published=(
        "the ends of the curves of the divergence figure; solutions in other norms are those of "
        "other runs' tokens"
    ),
    sizes=by_size(seeds=[16, 40, 100]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Directional Bregman divergence at the end of mirror descent (rows) from the max-margin "
        "solution in three norms (columns), mean and standard deviation over {sizes[instance]} "
        "random data sets. Runs are compared with the solutions of the tokens that they select "
        "themselves; on the right, solutions are compared with each other for the optimal tokens, "
        "which is what long runs tend to."
    ),
    artifact=Artifact(
        "runs stop short of their limit, and solutions in other norms are of other tokens",
        "Above, as published: gradients of automatic differentiation with {eps:g} added to their "
        "norm, which stops runs early; on the left the solution in another norm is that of the "
        "tokens of the runs with its exponent, which started elsewhere. Other tokens make most of "
        "that: for p = 1.75 against p = 2 the mean is "
        "{mean[as published, tokens of other runs]:.3f} with them and "
        "{mean[as published, tokens of the run itself]:.3f} without.",
        drawn=lambda data: OTHER_RUNS in data["block"],
    ),
)
