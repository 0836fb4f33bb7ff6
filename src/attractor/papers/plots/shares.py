"""Shares of trials by outcome, against a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import ScaledTranslation

from attractor.analysis.wilson import wilson_interval
from attractor.plots.design.look import COLORS
from attractor.plots.design.roles import role_of
from attractor.support.errors import InvalidInputError

_HATCHES = {"neither": "////", "not_settled": "...."}
_LEAST_WITH_COUNT = 0.075
"""Smallest share whose count is written into its bar."""


def stacked_shares(
    axes: Axes,
    counts: xr.DataArray,
    along: str,
    *,
    slot: tuple[int, int] = (0, 1),
    name: str = "",
    label: bool = True,
) -> None:
    """Draws how trials divide into classes: a bar for each value of a parameter, with counts.

    Args:
        axes: Where to draw.
        counts: Whole numbers; dimensions ``outcome`` (names of roles, from the bottom up) and
            ``along``. Where no trial was counted there is no bar.
        along: The parameter.
        slot: Which of how many bars that share a value, from the left: ``(0, 2)`` and ``(1, 2)``.
        name: Written above every bar, to tell such bars apart.
        label: Whether the classes get an entry in the legend.

    Raises:
        InvalidInputError: If counts are negative or not whole, or vary along something else.
    """
    _check_dimension(counts, along)
    values = counts.transpose("outcome", along).values
    if (values < 0).any() or (values != np.round(values)).any():
        raise InvalidInputError("counts", "some are no counts", "Give whole numbers from 0")
    totals = values.sum(0)
    number, of = slot
    width = (0.78 if of == 1 else 0.9) / of
    places = np.arange(values.shape[1]) + width * (number - (of - 1) / 2)
    shares = values / np.maximum(totals, 1)
    bottom = np.zeros(values.shape[1])
    for outcome, share, count in zip(counts["outcome"].values, shares, values, strict=True):
        role, hatch = role_of(str(outcome)), _HATCHES.get(str(outcome))
        bars: Any = {"facecolor": role.color, "hatch": hatch}
        bars |= {"edgecolor": "white", "linewidth": 0.5}
        axes.bar(places, share, 0.94 * width, bottom, label=role.label if label else None, **bars)
        for place, low, height, trials in zip(places, bottom, share, count, strict=True):
            if height >= _LEAST_WITH_COUNT:
                _write_count(axes, (place, low + height / 2), int(trials), role.color, of > 1)
        bottom = bottom + share
    for place in places[totals > 0] if name else ():
        axes.annotate(
            name, (place, 1), (0, 1.5), textcoords="offset points", ha="center", fontsize=6
        )
    _name_values(axes, counts[along], np.arange(values.shape[1]))
    axes.set_xlim(-0.6, values.shape[1] - 0.4)
    _percent(axes)
    axes.grid(False, axis="x")


def fraction_curve(
    axes: Axes,
    successes: xr.DataArray,
    trials: xr.DataArray | int,
    along: str,
    *,
    look: Mapping[str, Any],
    label: str | None = None,
    confidence: float = 0.95,
    shift: float = 0.0,
    categorical: bool = True,
) -> None:
    """Draws a fraction of trials against a parameter with Wilson's intervals.

    Args:
        axes: Where to draw.
        successes: Counts, dimension ``along``.
        trials: Out of how many, for all values or for each; those of none are left out.
        along: The parameter.
        look: Line properties, with a marker.
        label: Name in the legend.
        confidence: Of the intervals.
        shift: Moves the points sideways, in points, so that intervals do not hide each other.
        categorical: Whether values of the parameter are spaced evenly, rather than at their place.

    Raises:
        InvalidInputError: If counts do not fit each other, or vary along something else.
    """
    _check_dimension(successes, along)
    of = np.broadcast_to(np.asarray(trials), successes.shape)
    fraction, low, high = wilson(successes.values, of, confidence)
    places = np.arange(len(of)) if categorical else successes[along].values
    moved = axes.transData + ScaledTranslation(shift / 72, 0, axes.figure.dpi_scale_trans)
    points: Any = {"markersize": 4, "markeredgecolor": "white", "markeredgewidth": 0.4}
    axes.plot(places, fraction, label=label, transform=moved, **(points | dict(look)))
    axes.vlines(places, low, high, color=look["color"], linewidth=0.8, transform=moved)
    # The shift hides the points from the limits that axes find by themselves.
    axes.update_datalim(np.column_stack([places, fraction])[of > 0])
    axes.margins(x=0.05)
    axes.autoscale_view(scaley=False)
    if categorical:
        _name_values(axes, successes[along], places)
    _percent(axes, margin=0.03)


def wilson(
    successes: Float[Any, "value"], trials: Float[Any, "value"], confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A fraction with both ends of Wilson's interval; NaN of no trials.

    Args:
        successes: Counts.
        trials: Out of how many.
        confidence: Of the interval.

    Raises:
        InvalidInputError: If there are more successes than trials, or counts are not whole.
    """
    successes, trials = (np.asarray(counts, dtype=np.float64) for counts in (successes, trials))
    whole = (successes == np.round(successes)) & (trials == np.round(trials))
    if not (whole & (successes >= 0) & (successes <= trials)).all():
        raise InvalidInputError(
            "successes", "they are no counts out of trials", "Give whole numbers from 0 to trials"
        )
    share = np.divide(successes, trials, out=np.full(trials.shape, np.nan), where=trials > 0)
    low, high = np.moveaxis(wilson_interval(successes, trials, confidence), -1, 0)
    return share.ravel(), low.ravel(), high.ravel()


def _check_dimension(counts: xr.DataArray, along: str) -> None:
    if along not in counts.coords or along not in counts.dims:
        named = ", ".join(str(name) for name in counts.dims if name in counts.coords)
        raise InvalidInputError("along", f"nothing is named {along!r}", f"Give one of {named}")


def _write_count(
    axes: Axes, place: tuple[float, float], count: int, color: str, narrow: bool
) -> None:
    dark = np.dot(to_rgb(color), (0.299, 0.587, 0.114)) < 0.55
    ink: Any = {"color": "white" if dark else COLORS["black"], "fontsize": 5.2 if narrow else 6}
    ink["path_effects"] = [patheffects.withStroke(linewidth=1.8, foreground=color)]
    axes.text(*place, str(count), ha="center", va="center", **ink)


def _name_values(axes: Axes, values: xr.DataArray, places: np.ndarray) -> None:
    axes.set_xticks(places, [str(value) for value in values.values])
    axes.set_xlabel(str(values.name))


def _percent(axes: Axes, margin: float = 0.0) -> None:
    axes.set(ylim=(-margin, 1 + margin), yticks=np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
