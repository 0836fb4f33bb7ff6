"""Whole figures, put together from curves, maps and bars.

Patches and bars of fractions, which these figures alone are made of, are drawn here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import PercentFormatter

from attractor.analysis.wilson import wilson_interval
from attractor.errors import InvalidInputError
from attractor.plots import curves
from attractor.plots._figure import Figure
from attractor.plots._style import COLORS, PREDICTED, REACHED, SERIES
from attractor.plots.attention import (
    MOST_SEQUENCES,
    attention_map,
    colorbar,
    predicted_legend,
)
from attractor.plots.geometries import numbers_on_colors
from attractor.plots.several_runs import panels_of_runs, trials_in_words
from attractor.precision import check_shape
from attractor.records import axis_of

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
    labels: Sequence[Sequence[str]] = (),
) -> Figure:
    """Rows of images with the patch attention ended on and the patch predicted.

    Args:
        images: Brightness from 0 to 1, one array for each row of the figure.
        predicted: Patch numbers predicted, likewise.
        reached: Patch numbers reached, likewise.
        grid: Patches along one side.
        row_names: Name of each row.
        labels: What stands above each image, a row at a time; default: nothing.

    Raises:
        InvalidInputError: If rows are not as many as their names or labels.
    """
    check_shape("row_names", (len(row_names),), (len(images),))
    if labels:
        check_shape("labels", (len(labels),), (len(images),))
    columns = max(len(row) for row in images)
    height = 6.4 / columns + (0.17 if labels else 0)
    figure = Figure(figsize=(7.2, 0.45 + height * len(images)))
    axes = figure.subplots(len(images), columns, squeeze=False)
    for row, (places, pictures, theory, end, name) in enumerate(
        zip(axes, images, predicted, reached, row_names, strict=True)
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
            if labels:
                place.set_title(labels[row][column], loc="center", pad=2)
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
        feasible: Fraction of data sets whose predicted selection is feasible, dimension ``n``;
            with a dimension ``instance`` an entry for each data set, whose mean has an interval.
        kept: Fraction of images whose kept patch is the predicted one, likewise.
        whole: Fraction of data sets in which that is so for every image, likewise.
        chance: What guessing a patch would give for ``kept``.
    """
    figure = Figure(figsize=(7.2, 2.8))
    left, middle, right = figure.subplots(1, 3, sharey=True)
    fraction_bars(left, feasible, color=SERIES[2]["color"])
    fraction_bars(middle, kept, color=REACHED, chance=chance)
    fraction_bars(right, whole, color=REACHED, chance=chance ** whole["n"].values)
    left.set_title("prediction feasible,\nof data sets")
    middle.set_title("kept patch as predicted,\nof images")
    right.set_title("every patch as predicted,\nof data sets")
    if "instance" in feasible.dims:
        note = "black: 95 % interval over data sets"
        figure.supxlabel(note, fontsize=8, color="#555555")
    return figure


def _rarely(share: float) -> str:
    """A share in percent, or one in how many where that has no digits to read."""
    if share >= 1e-3:
        return f"{100 * share:.3g} %"
    return f"1 in {1 / share:,.0f}" if share > 1e-6 else f"1 in {1e-6 / share:,.3g} million"


def _panels(panels: Sequence[Callable[..., None]], runs: Mapping[str, xr.Dataset]) -> Figure:
    if not runs:
        raise InvalidInputError("runs", "there are none", "Give one or more, each by its name")
    known, total = zip(*(_trials_with_numbers(data) for data in runs.values()), strict=True)
    trials = trials_in_words(total, known)
    return panels_of_runs(panels, runs, columns=2, height=2.6, trials=trials)


def _trials_with_numbers(data: xr.Dataset) -> tuple[int, int]:
    known: Any = np.isfinite(data.margin_ratio).any(axis_of(data))
    return int(known.sum()), int(known.size)


def fraction_bars(
    axes: Axes,
    fractions: xr.DataArray,
    *,
    color: str,
    chance: float | Float[np.ndarray, "n"] | None = None,
) -> None:
    """Draws one bar for each data-set size, with its number above, beside the chance level.

    Of several data sets the bar is their mean and a line its 95 % interval: Wilson's where each is
    0 or 1, else Student's.

    Args:
        axes: Where to draw.
        fractions: Values from 0 to 1, dimension ``n``, and of several data sets ``instance``.
        color: Color of the bars.
        chance: Level that blind guessing would reach, for all sizes or each.
    """
    places = np.arange(fractions.sizes["n"])
    shares = fractions.mean("instance") if "instance" in fractions.dims else fractions
    bars = axes.bar(places, shares.values, width=0.6, color=color)
    tops = shares.values
    if "instance" in fractions.dims:
        low, tops = _interval(fractions.transpose("instance", "n").values)
        axes.vlines(places, low, tops, color=COLORS["black"], linewidth=1.2)
    for bar, value, top in zip(bars, shares.values, tops, strict=True):
        axes.annotate(
            f"{100 * value:.3g} %", (bar.get_x() + 0.3, top), (0, 2), ha="center", va="bottom",
            textcoords="offset points",
        )  # fmt: skip
    if chance is not None:
        levels = np.broadcast_to(chance, places.shape)
        dashed: Any = {"color": COLORS["orange"], "linestyle": (0, (2, 1)), "linewidth": 1.4}
        most = "" if np.ptp(levels) == 0 else " or less"
        label = f"chance: {_rarely(levels.max())}{most}"
        axes.hlines(levels, places - 0.45, places + 0.45, label=label, **dashed)
        axes.legend(loc="upper right")
    axes.set_xticks(places, [str(n) for n in fractions["n"].values])
    axes.set(xlabel="images in a data set, n", ylim=(0, 1.12), yticks=np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(False, axis="x")


def _interval(
    values: Float[np.ndarray, "instance n"],
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Both ends of the 95 % interval of a mean over data sets."""
    count = len(values)
    if np.isin(values, (0, 1)).all():
        low, high = np.moveaxis(wilson_interval(values.sum(0), np.array(count), 0.95), -1, 0)
        return low, high
    from scipy.special import stdtrit  # which few figures need

    half = stdtrit(count - 1, 0.975) * values.std(0, ddof=1) / np.sqrt(count)
    return np.maximum(values.mean(0) - half, 0), np.minimum(values.mean(0) + half, 1)


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
