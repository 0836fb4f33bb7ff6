"""A vision transformer trained by mirror descent and by Adam."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least
from attractor.papers.mirror_descent.classifiers.contest import rates_inside_the_range
from attractor.papers.mirror_descent.classifiers.experiment import Schedule, experiment
from attractor.papers.mirror_descent.classifiers.styles import (
    by_optimizer,
    epochs_panel,
    in_words,
    legend_of_optimizers,
    rates_in_words,
    rates_panel,
    weights_panel,
)
from attractor.papers.mirror_descent.images import image_task, images_of
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.pairs import panel_letters
from attractor.results.paper import MIRROR_DESCENT

_KEPT = (
    "validation_accuracy", "test_accuracy", "best_epoch", "status", "tried_rate", "tried_accuracy",
    "learning_rate", "at_edge", "hoyer", "largest_weight", "share_of_weights",
)  # fmt: skip


def _compute(request: Request) -> xr.Dataset:
    settings = request.settings
    images = images_of(settings["images"], request.source)
    task = image_task(
        Schedule(settings["epochs"], settings["patience"], settings["tries"]),
        images,
        sizes=settings["split"] if images.splits is None else settings["given_split"],
        seed=request.seed,
        **settings["model"],
    )
    found = experiment(request, task, settings["optimizers"], kind="image")
    name = settings["images"] if request.source is None else request.source.name
    return found[list(_KEPT)].assign_attrs(images=name)


def _readings(data: xr.Dataset) -> Readings:
    mean = data["test_accuracy"].mean("seed")
    sparse = data["hoyer"].sel(matrix="keys").mean(["seed", "block"])
    return Readings(
        at_least("mean test accuracy of p = 1.1 less that of Adam, and .05 more",
                 mean.sel(optimizer="p = 1.1") - mean.sel(optimizer="Adam") + 0.05, 0),
        at_least("mean sparsity of the keys with p = 1.1 less that with Adam",
                 sparse.sel(optimizer="p = 1.1") - sparse.sel(optimizer="Adam"), 0),
        rates_inside_the_range(data),
        accuracy=in_words(data["test_accuracy"]),
        rates=rates_in_words(data),
        sparsity=in_words(data["hoyer"].sel(matrix="keys").mean("block"), ".2f"),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure, ((accuracy, rates, epochs), (keys, values, sparsity)) = panels_on_page(5.0, 2, 3)
    by_optimizer(accuracy, data["test_accuracy"])
    accuracy.set(ylabel="test accuracy", title="on new images")
    rates_panel(rates, data)
    epochs_panel(epochs, data)
    epochs.sharey(rates)
    values.sharey(keys)
    for axes in (epochs, values):
        axes.tick_params(labelleft=False)
    for axes, matrix in ((keys, "keys"), (values, "values")):
        weights_panel(axes, data, matrix)
    keys.set_ylabel("share of weights")
    by_optimizer(sparsity, data["hoyer"].sel(matrix="keys").mean("block"))
    sparsity.set(ylabel="Hoyer sparsity", title="keys")
    panel_letters((accuracy, rates, epochs, keys, values, sparsity))
    legend_of_optimizers(figure, data["optimizer"].values)
    return figure


_COMMON = {
    "optimizers": ("p = 1.1", "p = 2", "p = 3", "Adam"),
    "seeds": 3,
    "patience": None,
    "tries": 5,
}
_DIGITS = {"train": 900, "validation": 300, "test": 500}
_MNIST = {"images": "MNIST", "split": {"train": 4000, "validation": 500, "test": 500}}

VISION = Figures(MIRROR_DESCENT).figure(
    "vision",
    "a vision transformer by mirror descent and by Adam: accuracy, histograms, sparsity",
    statement="experiment: vision transformer",
    published="CIFAR-10, one run each: both reach .81; with p = 1.1 more weights near zero",
    sizes={
        "quick": {
            **_COMMON,
            "images": "digits",
            "split": _DIGITS,
            "given_split": _DIGITS,
            "epochs": 60,
            "model": {"patch": 2, "width": 32, "blocks": 2, "heads": 4, "hidden": 64},
        },
        "small": {
            **_COMMON,
            **_MNIST,
            "given_split": {"train": 4000, "validation": 1000, "test": 4000},
            "epochs": 40,
            "model": {"patch": 4, "width": 64, "blocks": 2, "heads": 4, "hidden": 128},
        },
        "paper": {
            **_COMMON,
            **_MNIST,
            "given_split": {"train": None, "validation": 5000, "test": None},
            "seeds": 10,
            "epochs": 200,
            "tries": 7,
            "model": {"patch": 4, "width": 512, "blocks": 6, "heads": 8, "hidden": 512},
        },
    },
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Vision transformers trained on {attrs[images]} by mirror descent and others: (a) accuracy "
        "on {attrs[test_examples]:,} images not seen at the epoch that knows most of a validation "
        "split (means over {sizes[seed]} seeds with 95 % intervals; single seeds as dots): "
        "{accuracy}; (b) the search for learning rates, {sizes[try]} tries each (rings: chosen, "
        "crosses: diverged): {rates}; (c) validation accuracy by epoch; (d, e) magnitudes of the "
        "entries of keys and values, all blocks, mean over seeds; (f) Hoyer's sparsity of the "
        "keys: {sparsity}."
    ),
    takes="the binary version of CIFAR-10, or a folder in the format of MNIST",
)
