"""Medians over data sets with intervals that hold for any distribution."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import bdtr

from attractor.support.checks import check_share
from attractor.support.precision import as_real

CONFIDENCE = 0.95


class MedianInterval(NamedTuple):
    """A median over data sets, and an interval for that of the distribution they come from.

    Attributes:
        median: The median of the sample; NaN of an empty one.
        low: Lower end, minus infinity where the sample is too small for any.
        high: Upper end, or infinity.
    """

    median: float
    low: float
    high: float


def median_interval(
    values: Float[np.ndarray, "sample"], confidence: float = 0.95
) -> MedianInterval:
    """The median with its order-statistic interval, values that are NaN left out.

    Of n independent values the number below the true median is binomial with n trials and
    probability one half, whatever the distribution. So the k-th smallest and the k-th largest
    value enclose it with probability ``1 - 2 P(Binomial(n, 1/2) < k)`` at least; k is the largest
    for which that reaches ``confidence``. For 20 values and 95 % these are the 6th and the 15th.

    Args:
        values: Independent numbers.
        confidence: Probability to enclose the true median at least.
    """
    confidence = check_share("confidence", confidence, 0.95)
    values = as_real("values", values, ("...", "sample")).ravel()
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return MedianInterval(math.nan, -math.inf, math.inf)
    median = float(np.median(known))
    place = _place(len(known), confidence)
    if place == 0:
        return MedianInterval(median, -math.inf, math.inf)
    return MedianInterval(median, float(known[place - 1]), float(known[-place]))


def or_least(median: float) -> float:
    """A median to be ranked: minus infinity where there is none."""
    return -math.inf if math.isnan(median) else median


def joint_confidence(intervals: int) -> float:
    """The confidence that several intervals need each for ``CONFIDENCE`` together (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / intervals


def smallest_sample(confidence: float) -> int:
    """The least number of values of which an interval exists."""
    return math.ceil(math.log2(2 / (1 - confidence)) - 1e-9)


def _place(count: int, confidence: float) -> int:
    """The largest k whose interval is sure enough; 0 if there is none."""
    ranks = np.arange(1, count // 2 + 1)
    enclosed = 1 - 2 * bdtr(ranks - 1, count, 0.5)
    return int((enclosed >= confidence - 1e-12).sum())
