"""Readings that figures and claims of classifiers share."""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import stdtrit

from attractor.papers.figure import Reading, at_least

_BY_EXPONENT = ("p = 1.1", "p = 2", "p = 3")
_LEVEL = 0.95


def interval(values: Float[np.ndarray, "seed"]) -> tuple[float, float]:
    """The mean over seeds, and half the width of its 95 % interval by Student's law."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return float(known.mean()) if len(known) else np.nan, np.nan
    spread = known.std(ddof=1) / np.sqrt(len(known))
    return float(known.mean()), float(stdtrit(len(known) - 1, (1 + _LEVEL) / 2) * spread)


def falls_with_the_exponent(what: str, values: xr.DataArray) -> list[Reading]:
    """Readings of a number that must be smaller with every larger p of mirror descent.

    Args:
        what: The number, in words that end before the name of an optimizer.
        values: The number over ``optimizer``.
    """
    ordered = [name for name in _BY_EXPONENT if name in values["optimizer"]]
    last = what.split()[-1]
    return [
        at_least(f"{what} {before} less that {last} {after}",
                 values.sel(optimizer=before) - values.sel(optimizer=after), 0)
        for before, after in itertools.pairwise(ordered)
    ]  # fmt: skip


def rates_inside_the_range(data: xr.Dataset) -> Reading:
    """The reading that no learning rate chosen is at the edge of those tried."""
    count = data["at_edge"].size
    words = f"of {count} learning rates, those chosen inside the range tried"
    return at_least(words, count - int(data["at_edge"].sum()), count)
