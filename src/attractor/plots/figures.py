"""Whole figures, put together from curves, maps and bars. Make and save them inside ``style()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from attractor.errors import InvalidInputError
from attractor.plots import curves
from attractor.plots._style import PREDICTED, REACHED, SERIES
from attractor.plots.attention import attention_map, colorbar, predicted_legend
from attractor.plots.patches import (
    check_patches,
    image_with_patches,
    patch_frequency,
    patch_legend,
)
from attractor.plots.sizes import fraction_bars
from attractor.precision import check_shape
from attractor.records import axis_of

_BAND_NOTE = "line: median over trials; band: 10th to 90th percentile"


def direction_figure(runs: Mapping[str, xr.Dataset]) -> Figure:
    """Margin ratio and correlation along the records, and how far each is from 1.

    Args:
        runs: ``Verdict.data`` by name of the run, all along the same axis.
    """
    panels = (
        curves.margin_ratio,
        curves.margin_ratio_shortfall,
        curves.correlation,
        curves.correlation_shortfall,
    )
    return _panels(panels, runs)


def training_figure(runs: Mapping[str, xr.Dataset]) -> Figure:
    """Attention on the selected token, attention elsewhere, norm and loss along the records.

    Args:
        runs: ``Verdict.data`` by name of the run, all along the same axis.
    """
    panels = (
        curves.selected_probability,
        curves.unselected_probability,
        curves.norm_growth,
        curves.loss,
    )
    return _panels(panels, runs)


def attention_figure(
    before: xr.DataArray, after: xr.DataArray, predicted: xr.DataArray | None
) -> Figure:
    """Attention maps before and after training, with the predicted tokens ringed.

    Args:
        before: Softmax weights at the first step, dimensions ``sequence, token``.
        after: The same at the last step.
        predicted: Predicted token of every sequence, dimension ``sequence``.
    """
    rows = min(before.sizes["sequence"], 24)
    figure = Figure(figsize=(7.2, 1.5 + 0.19 * rows))
    left, right = figure.subplots(1, 2, sharey=True)
    attention_map(left, before, predicted)
    image = attention_map(right, after, predicted)
    left.set_title("before training")
    right.set_title("after training")
    right.set_ylabel("")
    colorbar(image, right)
    if predicted is not None:
        figure.legend(handles=predicted_legend(), loc="outside lower center")
    return figure


def patches_figure(
    images: Sequence[Float[np.ndarray, "image rows columns"]],
    predicted: Sequence[Int[np.ndarray, "image"]],
    reached: Sequence[Int[np.ndarray, "image"]],
    *,
    grid: int,
    row_names: Sequence[str],
) -> Figure:
    """Rows of images with the patch attention ended on and the patch predicted.

    Args:
        images: Brightness from 0 to 1, one array for each row of the figure.
        predicted: Patch numbers predicted, likewise.
        reached: Patch numbers reached, likewise.
        grid: Patches along one side.
        row_names: Name of each row.

    Raises:
        InvalidInputError: If rows are not as many as their names.
    """
    check_shape("row_names", (len(row_names),), (len(images),))
    columns = max(len(row) for row in images)
    figure = Figure(figsize=(7.2, 0.45 + 6.4 / columns * len(images)))
    axes = figure.subplots(len(images), columns, squeeze=False)
    for places, pictures, theory, end, name in zip(
        axes, images, predicted, reached, row_names, strict=True
    ):
        for column, place in enumerate(places):
            if column >= len(pictures):
                place.set_axis_off()
                continue
            image_with_patches(
                place,
                pictures[column],
                predicted=int(theory[column]),
                reached=int(end[column]),
                grid=grid,
            )
        places[0].text(-0.12, 0.5, name, transform=places[0].transAxes, ha="right", va="center")
    figure.legend(handles=patch_legend(), loc="outside lower center", ncols=2)
    return figure


def frequency_figure(
    predicted: Mapping[str, xr.DataArray], reached: Mapping[str, xr.DataArray], *, grid: int
) -> Figure:
    """How often each patch is predicted and reached, for each kind of image.

    Args:
        predicted: Patch numbers predicted, by kind of image.
        reached: Patch numbers reached, by kind of image.
        grid: Patches along one side.

    Raises:
        InvalidInputError: If nothing is predicted, kinds differ, or there are no such patches.
    """
    if not predicted:
        raise InvalidInputError("predicted", "it is empty", "Give patch numbers by kind of image")
    if set(reached) != set(predicted):
        kinds = ", ".join(predicted)
        raise InvalidInputError("reached", f"it has {', '.join(reached)}", f"Give {kinds}")
    for argument, by_kind in (("predicted", predicted), ("reached", reached)):
        for numbers in by_kind.values():
            check_patches(argument, numbers.values, grid)
    figure = Figure(figsize=(7.2, 2.3))
    panels = [
        (name, what, values[name])
        for name in predicted
        for what, values in (("predicted", predicted), ("reached", reached))
    ]
    shares = [np.bincount(v.values.ravel(), minlength=grid**2) / v.size for *_, v in panels]
    most = float(np.max(shares))
    axes = figure.subplots(1, len(panels))
    for place, (name, what, values) in zip(axes, panels, strict=True):
        patch_frequency(place, values, grid, most=most)
        place.set_title(f"{name}: {what}", color=PREDICTED if what == "predicted" else REACHED)
    figure.supxlabel("percent of images, for each of the patches", fontsize=8)
    return figure


def sizes_figure(
    feasible: xr.DataArray, kept: xr.DataArray, whole: xr.DataArray, *, chance: float
) -> Figure:
    """What a larger data set changes: feasibility, and agreement with the predicted selection.

    Args:
        feasible: Fraction of data sets whose predicted selection is feasible, dimension ``n``.
        kept: Fraction of images whose kept patch is the predicted one.
        whole: Fraction of data sets in which that is so for every image.
        chance: What guessing a patch would give for ``kept``.
    """
    figure = Figure(figsize=(7.2, 2.8))
    left, middle, right = figure.subplots(1, 3, sharey=True)
    fraction_bars(left, feasible, color=SERIES[2]["color"])
    fraction_bars(middle, kept, color=REACHED, chance=chance)
    fraction_bars(right, whole, color=REACHED)
    left.set_title("prediction feasible,\nof data sets")
    middle.set_title("kept patch as predicted,\nof images")
    right.set_title("every patch as predicted,\nof data sets")
    return figure


def _panels(panels: Sequence[Callable[..., None]], runs: Mapping[str, xr.Dataset]) -> Figure:
    figure = Figure(figsize=(7.2, 5.2))
    places = figure.subplots(2, 2).ravel()
    for axes, draw in zip(places, panels, strict=True):
        for (name, data), look in zip(runs.items(), cycle(SERIES), strict=False):
            draw(axes, data, label=name, look=look)
    if len(runs) > 1:
        handles, labels = places[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(runs))
    figure.supxlabel(_note(runs), fontsize=8, color="#555555")
    return figure


def _note(runs: Mapping[str, xr.Dataset]) -> str:
    """What line and band mean, and how many trials they are made of."""
    counts = [_trials_with_numbers(data) for data in runs.values()]
    shown = sum(count for count, _ in counts)
    total = sum(count for _, count in counts)
    if total == 1:
        return "one trial"
    some = "" if shown == total else f", of which {shown} have a solution to be held against"
    return f"{_BAND_NOTE} ({total} trials{some})"


def _trials_with_numbers(data: xr.Dataset) -> tuple[int, int]:
    known: Any = np.isfinite(data.margin_ratio).any(axis_of(data))
    return int(known.sum()), int(known.size)
