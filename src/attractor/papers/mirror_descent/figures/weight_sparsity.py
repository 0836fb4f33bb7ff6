"""Sparsity of the attention matrices of text classifiers, by optimizer."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request
from attractor.papers.mirror_descent.classifiers.contest import falls_with_the_exponent
from attractor.papers.mirror_descent.classifiers.experiment import experiment
from attractor.papers.mirror_descent.classifiers.styles import (
    HISTOGRAMS,
    by_optimizer,
    in_words,
    legend_of_optimizers,
    weights_panel,
)
from attractor.papers.mirror_descent.texts import SIZES, TAKES, task_of
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.pairs import panel_letters
from attractor.results.paper import MIRROR_DESCENT


def _compute(request: Request) -> xr.Dataset:
    found = experiment(request, task_of(request), request.settings["optimizers"], kind="text")
    return found[["hoyer", "largest_weight", "share_of_weights"]]


def _readings(data: xr.Dataset) -> Readings:
    by_seed = data["hoyer"].mean("block")
    mean = data["hoyer"].sel(matrix="keys").mean(["seed", "block"])
    sparsity = (
        f"{matrix} {in_words(by_seed.sel(matrix=matrix), '.2f')}"
        for matrix in data["matrix"].values.tolist()
    )
    return Readings(
        *falls_with_the_exponent("mean sparsity of the keys with", mean),
        sparsity="; ".join(sparsity),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(4.6, 2, 3, sharey="row")
    names = data["matrix"].values.tolist()
    for above, below, matrix in zip(*panels, names, strict=True):
        weights_panel(above, data, matrix)
        by_optimizer(below, data["hoyer"].sel(matrix=matrix).mean("block"))
        below.set_title(matrix)
    panels[0, 0].set_ylabel("share of weights")
    panels[1, 0].set_ylabel("Hoyer sparsity")
    panel_letters(panels.flat)
    legend_of_optimizers(figure, set(HISTOGRAMS) & set(data["optimizer"].values.tolist()))
    return figure


WEIGHT_SPARSITY = Figures(MIRROR_DESCENT).figure(
    "weight-sparsity",
    "histograms and sparsity of queries, keys and values by optimizer",
    statement="experiment: sentiment of film reviews, sparsity of weights",
    published=(
        "histograms of one model each: with p = 1.1 fewer weights beyond .06, and larger ones"
    ),
    sizes=SIZES,
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Matrices of queries, keys and values of text classifiers at the epoch chosen by "
        "validation: (a-c) magnitudes of their entries, for the optimizers of the legend (all "
        "blocks, mean over {sizes[seed]} seeds; the mark at the end is all larger ones), (d-f) "
        "Hoyer's sparsity, 0 where all entries are as large and 1 where one is not zero (mean over "
        "blocks; 95 % intervals over seeds). Sparsity: {sparsity}."
    ),
    takes=TAKES,
)
