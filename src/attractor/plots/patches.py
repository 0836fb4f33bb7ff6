"""Patches kept by attention, drawn on the images they were cut from."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle

from attractor.errors import InvalidInputError
from attractor.plots._style import PREDICTED, REACHED

_PREDICTED_LOOK = {"edgecolor": PREDICTED, "linestyle": (0, (2, 1.2)), "linewidth": 1.8}
_REACHED_LOOK = {"edgecolor": REACHED, "linestyle": "-", "linewidth": 2.2}


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
        axes.add_patch(
            Rectangle(
                (column * side - 0.5 + inset, row * side - 0.5 + inset),
                side - 2 * inset,
                side - 2 * inset,
                fill=False,
                clip_on=False,
                **look,
            )
        )
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
    image = axes.imshow(fractions, cmap="Blues", vmin=0, vmax=most)
    for (row, column), fraction in np.ndenumerate(fractions):
        axes.text(
            column,
            row,
            f"{100 * fraction:.0f}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if fraction > 0.6 * most else "#222222",
        )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    return image
