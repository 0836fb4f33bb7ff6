"""Whole figures, put together from curves, maps and bars.

Patches and bars of fractions, which these figures alone are made of, are drawn here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import PercentFormatter

from attractor.errors import InvalidInputError
from attractor.plots import curves
from attractor.plots._figure import Figure
from attractor.plots._style import COLORS, PREDICTED, REACHED, SERIES
from attractor.plots.attention import attention_map, colorbar, predicted_legend
from attractor.plots.geometries import numbers_on_colors
from attractor.precision import check_shape
from attractor.records import axis_of

_BAND_NOTE = "line: median over trials; band: 10th to 90th percentile"
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
    right.set(title="after training", ylabel="")
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
    """The frequency of each patch among those predicted and reached, for each kind of image.

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
    """The effect of larger data sets on feasibility and on agreement with the predicted selection.

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
    """The meaning of line and band, and the number of trials."""
    counts = [_trials_with_numbers(data) for data in runs.values()]
    shown = sum(count for count, _ in counts)
    total = sum(count for _, count in counts)
    if total == 1:
        return "one trial"
    some = "" if shown == total else f", of which {shown} have a solution to compare with"
    return f"{_BAND_NOTE} ({total} trials{some})"


def _trials_with_numbers(data: xr.Dataset) -> tuple[int, int]:
    known: Any = np.isfinite(data.margin_ratio).any(axis_of(data))
    return int(known.sum()), int(known.size)


def fraction_bars(
    axes: Axes, fractions: xr.DataArray, *, color: str, chance: float | None = None
) -> None:
    """Draws one bar for each data-set size, with its number above, beside the chance level.

    Args:
        axes: Where to draw.
        fractions: Values from 0 to 1, dimension ``n``.
        color: Color of the bars.
        chance: Level that blind guessing would reach.
    """
    places = np.arange(fractions.sizes["n"])
    bars = axes.bar(places, fractions.values, width=0.6, color=color)
    axes.bar_label(bars, labels=[f"{100 * value:.3g} %" for value in fractions.values], padding=2)
    if chance is not None:
        dashed: Any = {"color": COLORS["black"], "linestyle": "--", "linewidth": 1.1}
        axes.axhline(chance, label=f"chance: {100 * chance:.3g} %", **dashed)
        axes.legend(loc="upper right")
    axes.set_xticks(places, [str(n) for n in fractions["n"].values])
    axes.set(xlabel="images in a data set, n", ylim=(0, 1.12), yticks=np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(False, axis="x")


def image_with_patches(
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


def patch_frequency(axes: Axes, chosen: xr.DataArray, grid: int, *, most: float) -> AxesImage:
    """Draws how often each patch is chosen, as a map of the image.

    Args:
        axes: Where to draw.
        chosen: Patch numbers, of any dimensions.
        grid: Patches along one side.
        most: Fraction that takes the darkest color.

    Raises:
        InvalidInputError: If there are no patches of these numbers.
    """
    check_patches("chosen", chosen.values, grid)
    counts = np.bincount(chosen.values.ravel(), minlength=grid**2).reshape(grid, grid)
    fractions = counts / counts.sum()
    image = numbers_on_colors(
        axes, fractions, lambda value: f"{100 * value:.0f}", most=most, aspect="equal"
    )
    axes.set(xticks=[], yticks=[])
    return image
