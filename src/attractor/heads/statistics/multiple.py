"""Many heads tested at once, by randomization: error rates for all of them together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.support.checks import check_count, check_number
from attractor.support.errors import InvalidInputError


def check_draws(draws: Any, alpha: Any, *, argument: str = "draws") -> tuple[int, float]:
    """Checks that there are draws enough for a level.

    Args:
        draws: How many.
        alpha: The level.
        argument: What the draws are called.

    Raises:
        InvalidInputError: If there are not, or they are no count and no level.
    """
    draws = check_count(argument, draws, most=99_999)
    alpha = check_number("alpha", alpha, above=0.0, below=1.0, example=0.05)
    if (draws + 1) * alpha < 1:
        raise InvalidInputError(
            argument,
            f"of {draws} no p-value can be below {1 / (draws + 1):.3g}, and alpha is {alpha:g}",
            f"Give at least {fewest_draws(alpha)}" if alpha > 1e-5 else "Give a larger alpha",
        )
    return draws, alpha


def fewest_draws(alpha: float) -> int:
    """Draws from which on a p-value can be as small as a level."""
    return math.ceil(1 / alpha) - 1


def randomization_p(statistic: Float[np.ndarray, "*heads draws"]) -> Float[np.ndarray, "*heads"]:
    """Share of draws with a statistic as large as the first, which is that of the head itself.

    The head is one of the draws, so that no share is zero (Phipson and Smyth 2010).

    Args:
        statistic: The statistic of the head, then of every draw of the null.
    """
    return (statistic >= statistic[..., :1]).mean(-1)


def together(statistic: Float[np.ndarray, "heads draws"]) -> Float[np.ndarray, "heads"]:
    """P-values that hold for all heads together: the family-wise error rate.

    Every head's statistics are standardized by their mean and deviation over all draws, the head
    itself among them; a head is compared with the largest of all heads in each draw (max-T,
    Westfall and Young 1993). Where every draw of a head is alike it is never the largest.

    Args:
        statistic: The statistic of every head, then of every draw of its null.
    """
    mean, deviation = statistic.mean(-1, keepdims=True), statistic.std(-1, keepdims=True)
    alike = deviation == 0
    standardized = np.where(alike, -np.inf, (statistic - mean) / np.where(alike, 1, deviation))
    largest = standardized.max(0)
    return (largest >= standardized[:, :1]).mean(-1)


def false_discovery(p: Float[np.ndarray, "heads"]) -> Float[np.ndarray, "heads"]:
    """The smallest false discovery rate at which each head is found (Benjamini, Hochberg 1995)."""
    order = np.argsort(p)
    steps = p[order] * len(p) / np.arange(1, len(p) + 1)
    found = np.empty(len(p))
    found[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return found


def enough_for_discovery(draws: int, alpha: float) -> bool:
    """Whether draws suffice for false discovery rates: a tenth of the heads at the least p."""
    return (draws + 1) * alpha >= 10


def resampled(
    hits: Float[np.ndarray, "rows"],
    documents: np.ndarray,
    random: np.random.Generator,
    resamples: int = 2000,
) -> tuple[float, float]:
    """A 95 % interval of a mean, by resampling documents with all their rows.

    Args:
        hits: A number of each row.
        documents: The document of each row.
        random: Draws the resamples.
        resamples: How many.

    Returns:
        The lower and the upper end; NaN of fewer than two documents.
    """
    _, place = np.unique(documents, return_inverse=True)
    count = place.max(initial=-1) + 1
    if count < 2:
        return np.nan, np.nan
    sums, sizes = np.bincount(place, hits), np.bincount(place)
    drawn = random.integers(count, size=(resamples, count))
    means = sums[drawn].sum(-1) / sizes[drawn].sum(-1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
