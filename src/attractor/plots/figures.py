"""Figures of weights, of attention and of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from attractor.plots import curves
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PREDICTED, REACHED
from attractor.plots.several_runs import panels_of_runs, trials_in_words
from attractor.results import axis_of
from attractor.support.errors import InvalidInputError
from attractor.support.precision import check_shape

MOST_SEQUENCES = 24
"""Sequences shown in one map; more would be too small to read."""


def attention_map(
    axes: Axes, weights: xr.DataArray, predicted: xr.DataArray | None = None
) -> AxesImage:
    """Draws softmax weights, a row for each sequence, with the predicted token of each ringed.

    Args:
        axes: Where to draw.
        weights: Softmax weights, dimensions ``sequence, token``; NaN where masked.
        predicted: Position of the predicted token, dimension ``sequence``; -1 for none.
    """
    shown = weights.transpose("sequence", "token")[:MOST_SEQUENCES]
    rows, columns = shown.shape
    axes.set_facecolor("#eeeeee")
    image = axes.imshow(shown.values, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    if predicted is not None:
        positions = predicted.values[:rows]
        known = np.flatnonzero(positions >= 0)
        axes.plot(positions[known], known, **ring(rows))
    axes.set(xlabel="token", ylabel="sequence", xticks=ticks(columns), yticks=ticks(rows))
    axes.grid(False)
    return image


def predicted_legend() -> list[Line2D]:
    """The legend of an attention map."""
    return [Line2D([], [], label="token predicted", **ring(1))]


def ring(rows: int) -> dict:
    """The marker put round a token, small where there are many rows."""
    return {
        "linestyle": "none",
        "marker": "o",
        "markersize": float(np.clip(110 / rows, 4, 9)),
        "markerfacecolor": "none",
        "markeredgecolor": PREDICTED,
        "markeredgewidth": 1.6,
    }


def ticks(count: int) -> np.ndarray:
    """Every position while there are few, else about ten of them."""
    return np.arange(0, count, max(1, int(np.ceil(count / 10))))


def colorbar(image: AxesImage, axes: Axes) -> None:
    """Puts the scale of attention weights beside ``axes``."""
    figure = axes.figure
    bar = figure.colorbar(image, ax=axes, shrink=0.85)
    bar.set_label("attention weight")
    bar.outline.set_edgecolor(COLORS["gray"])


_PREDICTED_LOOK = {"edgecolor": PREDICTED, "linestyle": (0, (2, 1.2)), "linewidth": 1.8}
_REACHED_LOOK = {"edgecolor": REACHED, "linestyle": "-", "linewidth": 2.2}


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
        before: Softmax weights at the first step, dimensions ``sequence, token``; with a
            dimension ``attention_head`` before them, a row of maps for each head.
        after: The same at the last step.
        predicted: Predicted token of every sequence, dimension ``sequence``, and likewise.
    """
    parts = [before, after] if predicted is None else [before, after, predicted]
    heads = [parts]
    if "attention_head" in before.dims:
        numbers = range(before.sizes["attention_head"])
        heads = [[part.isel(attention_head=number) for part in parts] for number in numbers]
    height = 0.19 * min(before.sizes["sequence"], MOST_SEQUENCES) + (0.45 if heads[1:] else 0)
    figure = Figure(figsize=(7.2, 1.5 + height * len(heads)))
    axes = figure.subplots(len(heads), 2, sharex=True, sharey=True, squeeze=False)
    for number, ((left, right), (first, last, *rings)) in enumerate(zip(axes, heads, strict=True)):
        of_head = f", attention head {number}" if heads[1:] else ""
        attention_map(left, first, *rings)
        image = attention_map(right, last, *rings)
        left.set_title(f"before training{of_head}")
        right.set(title=f"after training{of_head}", ylabel="")
        colorbar(image, right)
        if number + 1 < len(heads):
            left.set_xlabel("")
            right.set_xlabel("")
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
            _image_with_patches(
                place,
                pictures[column],
                predicted=int(theory[column]),
                reached=int(end[column]),
                grid=grid,
            )
        places[0].text(-0.12, 0.5, name, transform=places[0].transAxes, ha="right", va="center")
    figure.legend(handles=patch_legend(), loc="outside lower center", ncols=2)
    return figure


def _panels(panels: Sequence[Callable[..., None]], runs: Mapping[str, xr.Dataset]) -> Figure:
    if not runs:
        raise InvalidInputError("runs", "there are none", "Give one or more, each by its name")
    known, total = zip(*(_trials_with_numbers(data) for data in runs.values()), strict=True)
    trials = trials_in_words(total, known)
    return panels_of_runs(panels, runs, columns=2, height=2.6, trials=trials)


def _trials_with_numbers(data: xr.Dataset) -> tuple[int, int]:
    known: Any = np.isfinite(data.margin_ratio).any(axis_of(data))
    return int(known.sum()), int(known.size)


def _image_with_patches(
    axes: Axes,
    image: Float[np.ndarray, "rows columns"],
    *,
    predicted: int,
    reached: int,
    grid: int,
) -> None:
    """Draws an image with the patch predicted dashed and the patch attention kept solid.

    Args:
        axes: Where to draw.
        image: Brightness from 0 to 1.
        predicted: Number of the predicted patch, row by row.
        reached: Number of the kept patch; the same as ``predicted`` where theory was right.
        grid: Patches along one side.

    Raises:
        InvalidInputError: If there are no patches of these numbers.
    """
    for argument, number in (("predicted", predicted), ("reached", reached)):
        check_patches(argument, number, grid)
    axes.imshow(1 - np.asarray(image), cmap="gray", vmin=-0.15, vmax=1.07)
    side = len(image) / grid
    # The dashed outline is drawn inside the solid one, so that both show where they agree.
    for number, inset, look in ((reached, 0.0, _REACHED_LOOK), (predicted, 0.22, _PREDICTED_LOOK)):
        row, column = divmod(number, grid)
        corner, width = (column * side - 0.5 + inset, row * side - 0.5 + inset), side - 2 * inset
        axes.add_patch(Rectangle(corner, width, width, fill=False, clip_on=False, **look))
    axes.set_axis_off()


def patch_legend() -> list[Patch]:
    """The legend of images with patches."""
    return [
        Patch(fill=False, label="patch attention ended on", **_REACHED_LOOK),
        Patch(fill=False, label="patch predicted (highest token score)", **_PREDICTED_LOOK),
    ]


def check_patches(argument: str, numbers: Any, grid: int) -> None:
    """Checks numbers of patches against how many there are.

    Raises:
        InvalidInputError: If one is no whole number from 0 to ``grid**2 - 1``, or there is none.
    """
    numbers = np.asarray(numbers)
    whole = numbers.dtype.kind in "iu" and numbers.size > 0
    if not whole or numbers.min() < 0 or numbers.max() >= grid**2:
        raise InvalidInputError(
            argument, "they are no numbers of patches", f"Give integers from 0 to {grid**2 - 1}"
        )
