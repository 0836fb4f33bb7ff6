"""What is seen in pictures, in words and numbers, for those who cannot see them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.plots.curves import AXIS_LABELS
from attractor.results import axis_of
from attractor.results.seen import course, listed, many, spread

__all__ = ["course", "curves", "listed", "many", "runs", "spread"]


def curves(data: xr.Dataset, measures: Mapping[str, str]) -> str:
    """How the medians over trials of several measures go along the records.

    Args:
        data: Measures along an axis of records; all other dimensions count trials.
        measures: Names of measures, with their words; those not in the data are left out.
    """
    said, axis, places = [], "", np.zeros(1)
    for name, words in measures.items():
        if name not in data:
            continue
        axis = axis_of(data[name])
        values = data[name].transpose(axis, ...).values.reshape(data.sizes[axis], -1)
        places = data[axis].values
        with np.errstate(all="ignore"):
            said.append(f"{words} {course(_medians(values))}")
    span = f"{AXIS_LABELS.get(axis, axis)} {places[0]:,.4g} to {places[-1]:,.4g}"
    return f"{'; '.join(said)} ({span})"


def runs(data: Mapping[str, xr.Dataset], measures: Mapping[str, str]) -> str:
    """The same for several runs by their names, medians over trials."""
    lines = [
        f"{name}: {curves(one, measures)}" if name else curves(one, measures)
        for name, one in data.items()
    ]
    return f"Medians over trials. {'. '.join(lines)}."


def _medians(values: Float[np.ndarray, "place trial"]) -> Float[np.ndarray, "place"]:
    """The median of each place over its finite trials; NaN where there are none."""
    finite = np.isfinite(values)
    some = finite.any(1)
    result = np.full(len(values), np.nan)
    result[some] = np.nanmedian(np.where(finite, values, np.nan)[some], axis=1)
    return result
