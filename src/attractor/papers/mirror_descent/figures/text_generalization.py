"""Accuracy of text classifiers trained by several optimizers on texts they have not seen."""

from __future__ import annotations

import xarray as xr

from attractor.papers.figure import Artifact, Figures, Readings, Request
from attractor.papers.mirror_descent.classifiers.contest import (
    falls_with_the_exponent,
    rates_inside_the_range,
)
from attractor.papers.mirror_descent.classifiers.experiment import experiment
from attractor.papers.mirror_descent.classifiers.styles import (
    by_model,
    by_optimizer,
    epochs_panel,
    in_words,
    legend_of_optimizers,
    rates_in_words,
    rates_panel,
)
from attractor.papers.mirror_descent.texts import SIZES, TAKES, task_of
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import PAGE
from attractor.plots.design.pairs import panel_letters
from attractor.results.paper import MIRROR_DESCENT

_PUBLISHED = "as_published_accuracy"
_BY_MODEL = "accuracy_by_model"


def _compute(request: Request) -> xr.Dataset:
    names = request.settings["optimizers"]
    task = task_of(request)
    *others, main = request.settings["models"]
    compared = list(request.settings["compared"])
    found = experiment(request, task, names, kind="text")
    kept = ["validation_accuracy", "test_accuracy", "best_epoch", "status", "tried_rate",
            "tried_accuracy", "learning_rate", "at_edge"]  # fmt: skip
    data = found[kept]
    if request.as_published:
        copied = experiment(request, task, names, kind="text", same_start=True, searched=found)
        data[_PUBLISHED] = copied["highest_test_accuracy"]
    by_size = [
        experiment(request, task_of(request, model), compared, kind="text") for model in others
    ]
    accuracies = [each["test_accuracy"] for each in (*by_size, found.sel(optimizer=compared))]
    data[_BY_MODEL] = xr.concat(
        [values.rename(optimizer="compared") for values in accuracies],
        xr.IndexVariable("model", [*others, main]),
    )
    return data


def _readings(data: xr.Dataset) -> Readings:
    mean = data["test_accuracy"].mean("seed")
    rates, epochs = ("c", "d") if data.sizes["model"] > 1 else ("b", "c")
    return Readings(
        *falls_with_the_exponent("mean test accuracy of", mean),
        rates_inside_the_range(data),
        accuracy=in_words(data["test_accuracy"]),
        by_size=_by_size(data),
        rates_panel=rates,
        rates=rates_in_words(data),
        epochs_panel=epochs,
        as_published=in_words(data[_PUBLISHED]) if _PUBLISHED in data else "",
    )


def _draw(data: xr.Dataset) -> Figure:
    several = data.sizes["model"] > 1
    figure = Figure(figsize=(PAGE, 5.0 if several else 2.7))
    if several:
        left, models, rates, epochs = figure.subplots(
            2, 2, sharey="row", width_ratios=(1.25, 1)
        ).flat
        by_model(models, data[_BY_MODEL].rename(compared="optimizer"))
        models.set_title("by size of the model")
    else:
        left, rates, epochs = figure.subplots(1, 3, width_ratios=(1.1, 1, 1))
        epochs.sharey(rates)
        epochs.tick_params(labelleft=False)
    kinds = {}
    if _PUBLISHED in data:
        by_optimizer(left, data["test_accuracy"], shift=-0.15)
        by_optimizer(left, data[_PUBLISHED], shift=0.25, hollow=True)
        kinds = {"chosen by validation": False, "highest of all epochs on the test set": True}
    else:
        by_optimizer(left, data["test_accuracy"])
    left.set(ylabel="test accuracy", title="on new texts")
    rates_panel(rates, data)
    epochs_panel(epochs, data)
    panel_letters(figure.axes)
    legend_of_optimizers(figure, data["optimizer"].values, kinds)
    return figure


def _by_size(data: xr.Dataset) -> str:
    """Accuracies of the other models, where there are any, in a sentence."""
    accuracy = data[_BY_MODEL].rename(compared="optimizer")
    others = [
        f"{name} {in_words(accuracy.sel(model=name))}" for name in accuracy["model"].values[:-1]
    ]
    return f"(b) By size of the model: {'; '.join(others)}. " if others else ""


TEXT_GENERALIZATION = Figures(MIRROR_DESCENT).figure(
    "text-generalization",
    "test accuracy of text classifiers by optimizer, each with its own learning rate",
    statement="experiment: sentiment of film reviews, test accuracy",
    published="test accuracy of p = 1.1 above those of p = 2 and 3, for three sizes of model",
    sizes=SIZES,
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Accuracy on {attrs[test_examples]:,} texts not seen, of transformers trained by several "
        "optimizers, at the epoch that knows most of a validation split (means over {sizes[seed]} "
        "seeds with 95 % intervals; single seeds as dots): (a) {accuracy}. {by_size}Learning rates "
        "come from one search for all, {sizes[try]} tries each on the validation split "
        "({rates_panel}; rings: chosen, crosses: diverged): {rates}. ({epochs_panel}) Validation "
        "accuracy by epoch, while every seed trains."
    ),
    artifact=Artifact(
        "accuracy read as the highest of all epochs on the test set, with all runs from one start",
        "Hollow: the published reading, the highest accuracy of all epochs on the test set itself, "
        "from one start for all seeds: {as_published}.",
        drawn=lambda data: _PUBLISHED in data,
    ),
    takes=TAKES,
)
