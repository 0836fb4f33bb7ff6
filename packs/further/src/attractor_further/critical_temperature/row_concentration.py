"""The gaps of a row of scores alone bound attention to its top token, from both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from attractor.papers import Claims, Comparison, Exponent, Measurement, once
from attractor.papers.given import DISCRETE_TOKENS
from attractor.prompts import HeadCase, row_concentration
from attractor.prompts.measures import Empirical
from attractor_further.critical_temperature import PAPER
from attractor_further.critical_temperature.data import logarithmic_gaps, sampled_head

_QUERIES = 64
_ABOVE = (1.25, 1.5, 1.75)
"""Inverse temperatures over the rate, where 1 / (r - 1) is not below 1 for every row."""
_BELOW = (0.25, 0.5, 0.75)
_ROUNDING = 1e-9

CLAIMS = Claims(PAPER, HeadCase)

Row = tuple[float, int, Float[np.ndarray, "token"]]
"""Rate, count at the supremum, and gaps."""


@once
def _rows(case: HeadCase, seed: int) -> list[Row]:
    """The rows of some queries against the tokens; those without one top token are left out."""
    law = case.tokens
    assert isinstance(law, Empirical)
    scores = case.queries.sample(_QUERIES, seed=seed) @ case.U.T @ np.asarray(law.points).T
    found = row_concentration(scores)
    gaps = scores.max(-1, keepdims=True) - scores
    kept = (found.rate > 0) & np.isfinite(found.rate)
    return list(zip(found.rate[kept], found.count[kept], gaps[kept], strict=True))


def _spreads(case: HeadCase, seed: int, ratios: Sequence[float]) -> Iterator[tuple[float, ...]]:
    """Ratio, count and one over the top probability, of every row at every ratio to its rate."""
    for rate, count, gaps in _rows(case, seed):
        for r in ratios:
            yield r, count, float(np.exp(-r * rate * gaps).sum())


def _over_bound(case: HeadCase, seed: int, bound: Callable[[float], float]) -> Measurement:
    found = [spread / bound(r) for r, _, spread in _spreads(case, seed, _ABOVE)]
    return Measurement(max(found, default=np.nan), len(found))


ROW_CONCENTRATION = CLAIMS.claim(
    "row-concentration",
    "at r > 1 times the rate of its gap counts, one over a row's top probability is <= r/(r - 1)",
    statement="upper-tail accumulation scale of a row of scores",
    assuming=(DISCRETE_TOKENS,),
    contrast=Comparison(
        "largest ratio of 1 / p_top to r / (r - 1), over rows of queries and r = 1.25, 1.5, 1.75",
        _over_bound,
        lambda *_: lambda r: r / (r - 1),
        "the same to 1 / (r - 1), without the top token itself",
        lambda *_: lambda r: 1 / (r - 1),
        bound=1 + _ROUNDING,
        reason="rounding alone; the sharp bound is the zeta function of r, which lies between both",
    ),
    data=lambda seed: [logarithmic_gaps(20_000), sampled_head(seed)],
    note="the constant is derived, by parts: it is not quoted from the paper; rows whose k-th gap "
    "is log(k) / rate reach sum_k k^-r, and r / (r - 1) only as r falls to 1",
    exchange="an upper bound, of which twice is one as well",
)


def _over_floor(case: HeadCase, seed: int, scale: float) -> Measurement:
    """The least logarithm of 1 / p_top over the count to the power ``scale - r``."""
    found = [
        np.log(spread) - (scale - r) * np.log(count)
        for r, count, spread in _spreads(case, seed, _BELOW)
    ]
    return Measurement(float(min(found, default=np.nan)), len(found))


ROW_SPREAD = CLAIMS.claim(
    "row-spread",
    "at r < 1 times its rate, the k tokens up to the critical gap leave p_top at most k^(r - 1)",
    statement="upper-tail accumulation scale of a row of scores, from below",
    assuming=(DISCRETE_TOKENS,),
    contrast=Comparison(
        "least logarithm of (1 / p_top) / k^(1 - r), over rows of queries and r = .25, .5, .75",
        _over_floor,
        lambda *_: Exponent(1.0),
        "the same of (1 / p_top) / k^(1.25 - r), a scale a quarter larger",
        lambda *_: Exponent(1.25),
        bound=-_ROUNDING,
        sense=">=",
        reason="rounding alone: k tokens have at least the weight of the last of them",
    ),
    data=lambda seed: [logarithmic_gaps(20_000), sampled_head(seed)],
    note="derived, not quoted; k is the count where log N(t) / t is largest",
    exchange="one",
)
