"""Slopes of curves over a window and over its halves, and Student's interval of their mean."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from attractor.support.checks import check_kinds

HALF_POINTS = 3
"""Points that a line needs for its slope to have an error."""


class Slope(NamedTuple):
    """The mean slope over trials, with its confidence interval.

    Attributes:
        mean: The slope; NaN if there is none.
        low: Lower end of the interval.
        high: Upper end.
    """

    mean: float
    low: float
    high: float

    def overlaps(self, other: Slope) -> bool:
        """Whether the two intervals have a number in common."""
        check_kinds(other=(other, Slope))
        return self.low <= other.high and other.low <= self.high


NO_SLOPE = Slope(math.nan, math.nan, math.nan)


class Lines(NamedTuple):
    """A line fitted by least squares to every trial.

    Attributes:
        slope: Its slope; NaN where the abscissa does not change.
        error: Standard error of the slope.
        freedom: Points less the two numbers fitted.
        rounding: What the rounding of the points alone may change of the slope.
    """

    slope: Float[np.ndarray, "trial"]
    error: Float[np.ndarray, "trial"]
    freedom: Int[np.ndarray, "trial"]
    rounding: Float[np.ndarray, "trial"]


def last_window(
    abscissa: Float[np.ndarray, "trial point"],
    usable: Bool[np.ndarray, "trial point"],
    decades: float,
    fraction: float | None,
) -> Bool[np.ndarray, "trial point"]:
    """The points at the end of every trial that the fit is made to, without a gap.

    Args:
        abscissa: As given.
        usable: Where the law can use it; points before the last one it cannot are left out.
        decades: Factors of ten back from the last value of the abscissa.
        fraction: If not None, which part of the usable points in place of that.
    """
    place = np.arange(abscissa.shape[1])
    start = np.where(usable, 0, place + 1).max(1, initial=0)
    if fraction is None:
        with np.errstate(invalid="ignore"):
            early = ~(abscissa >= abscissa[:, -1:] / 10**decades)
        start = np.maximum(start, np.where(early, place + 1, 0).max(1, initial=0))
    else:
        start = start + np.floor((1 - fraction) * (len(place) - start) + 1e-9).astype(int)
    return place >= start[:, None]


def halves(
    window: Bool[np.ndarray, "trial point"],
) -> tuple[Bool[np.ndarray, "trial point"], Bool[np.ndarray, "trial point"]]:
    """The first and the second half of the points of every window."""
    second = window & (np.cumsum(window, axis=1) > window.sum(1, keepdims=True) // 2)
    return window & ~second, second


def fit_lines(
    x: Float[np.ndarray, "trial point"],
    y: Float[np.ndarray, "trial point"],
    window: Bool[np.ndarray, "trial point"],
) -> Lines:
    """Fits ``y = slope x + constant`` to the points of every trial's window."""
    count = window.sum(1)
    x, y = np.where(window, x, 0.0), np.where(window, y, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        across = np.where(window, x - (x.sum(1) / count)[:, None], 0.0)
        along = np.where(window, y - (y.sum(1) / count)[:, None], 0.0)
        spread = (across**2).sum(1)
        unit = np.finfo(float).eps
        level = unit * np.abs(x).max(1)
        spread = np.where(spread > count * (8 * level) ** 2, spread, np.nan)
        slope = (across * along).sum(1) / spread
        residual = along - slope[:, None] * across
        error = np.sqrt((residual**2).sum(1) / (count - 2) / spread)
        noise = 2 * (unit * np.abs(y).max(1) + np.abs(slope) * level)
        return Lines(slope, error, count - 2, noise * np.sqrt(count / spread))


def mean_slope(lines: Lines, units: Int[np.ndarray, "trial"], confidence: float) -> Slope:
    """The mean over independent units, with Student's interval.

    Trials of the same unit are averaged first: they are not independent of each other. A trial
    alone has the interval of its own regression.

    Args:
        lines: The fits, none of them NaN.
        units: Which unit every trial belongs to.
        confidence: Probability that the interval covers the true slope.
    """
    _, unit = np.unique(units, return_inverse=True)
    means = np.bincount(unit, lines.slope) / np.bincount(unit)
    if len(means) > 1:
        error, freedom = means.std(ddof=1) / math.sqrt(len(means)), len(means) - 1
    else:
        error, freedom = lines.error[0], lines.freedom[0]
    reach = stdtrit(freedom, (1 + confidence) / 2) * error + lines.rounding.max()
    mean = float(means.mean())
    return Slope(mean, float(mean - reach), float(mean + reach))
