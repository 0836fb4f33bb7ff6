"""Many heads tested at once, by randomization, and how often null draws are rejected so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.support.checks import check_count, check_number
from attractor.support.errors import InvalidInputError

if TYPE_CHECKING:
    import xarray as xr


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


def draws_as_heads(
    statistic: Float[np.ndarray, "heads draws+1"],
) -> tuple[Float[np.ndarray, "heads draws"], Float[np.ndarray, "heads draws"]]:
    """P-values of every draw of all heads as if these were the heads, the heads among the draws.

    Args:
        statistic: The statistic of every head, then of every draw of its null.

    Returns:
        P-values of each head by itself, and those that hold for all heads together.
    """
    draws = statistic.shape[-1] - 1
    alone, of_all = np.empty((2, len(statistic), draws))
    for draw in range(draws):
        order = np.arange(draws + 1)
        order[[0, draw + 1]] = draw + 1, 0
        taken = statistic[:, order]
        alone[:, draw], of_all[:, draw] = randomization_p(taken), together(taken)
    return alone, of_all


def calibration(data: xr.Dataset) -> xr.Dataset:
    """How often each null's draws are told apart when taken for the heads, one draw at a time.

    Tests that treat the head and its draws alike reject at most a share ``alpha`` of all of them,
    whatever the numbers are. So this is no sample with an interval: it shows that the tests do
    treat them alike, and what tests of single heads would have rejected. Whether draws are fair to
    heads is another question, which only heads known to have no pairing can answer.

    Args:
        data: The arrays of an audit.

    Returns:
        Over ``null``: ``rejected``, draws with a head told apart, for all together;
        ``rejected_alone``, draws with a head whose own p is at most ``alpha``; ``share_alone``,
        the share of those p among all heads and draws; ``excess`` and ``shortfall``, how far the
        distribution function of p is above and below that of equal shares of
        ``1 / (draws + 1), ..., 1``. Ties bring a
        shortfall, and so do heads that beat their draws.
    """
    import xarray as xr

    alpha, draws = float(data.attrs["alpha"]), data.sizes["draw"]
    known = np.isfinite(data["accuracy"].to_numpy())
    heads = data["accuracy"].to_numpy()[known][:, None]
    nulls = data["null"].to_numpy().tolist()
    found: dict[str, list[float]] = {}
    for null in nulls:
        of_draws = data["accuracy_null"].sel(null=null).transpose("layer", "head", "draw")
        alone, of_all = draws_as_heads(np.concatenate([heads, of_draws.to_numpy()[known]], -1))
        steps = np.arange(1, draws + 2) / (draws + 1)
        difference = np.array([(alone <= step + 1e-9).mean() for step in steps]) - steps
        one = {
            "rejected": int((of_all <= alpha).any(0).sum()),
            "rejected_alone": int((alone <= alpha).any(0).sum()),
            "share_alone": float((alone <= alpha).mean()),
            "excess": float(difference.max()),
            "shortfall": float(-difference.min()),
        }
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    return xr.Dataset(
        {name: ("null", values) for name, values in found.items()},
        {"null": nulls},
        {"alpha": alpha, "draws": draws},
    )
