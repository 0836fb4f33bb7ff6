"""Whether a run has come to rest, or may still end elsewhere: the interval of what falls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Measurement

_AHEAD = 10.0
"""Times that a run may still grow so much: what each would bring is what the last one did."""
_DOUBT = 2.0
"""Times what a run would still bring, if it brought less by the same factor again and again."""
_ROUNDING = 1e-9
"""Share of a distance that comes of rounding, in which nothing falls ever faster."""


def where_it_ends(
    values: Float[np.ndarray, "record"],
    checked: int = 1,
    details: Mapping[str, Any] | None = None,
    *,
    ahead: float = _AHEAD,
    begun: bool = True,
) -> Measurement:
    """The last of some values, with an interval down to where a longer run may take it.

    At which rate runs come nearer is not known in general, so that one that is still on its way may
    end below. The interval begins at zero where what steps bring does not become less from one
    stretch to the next, and otherwise at what would be left after several more of them, or after
    twice what all of them bring if each brings less by the factor of the last two.

    Args:
        values: A distance from what is claimed, at as many records in each of three stretches, in
            each of which the run becomes longer by the same factor.
        checked: How many items it is taken over.
        details: Other numbers.
        ahead: Times that it may still grow so much. Less than the default are right where the rate
            is known: if each stretch brings at most half of what the one before did, all that are
            left bring no more than the last one.
        begun: Whether the run has got so far that its end could be seen; else it may end anywhere.
    """
    now, (first, second, third) = float(values[-1]), np.split(np.asarray(values, float), 3)
    fluctuation = 2 * math.sqrt((_scatter(second) + _scatter(third)) / len(third))
    earlier, brought = float(first.mean() - second.mean()), float(second.mean() - third.mean())
    as_fast = brought > max(fluctuation, earlier, _ROUNDING * abs(now))
    open_ended = as_fast or not begun
    next_one = max(0.0, brought + fluctuation)
    if next_one < earlier:
        ahead = min(ahead, _DOUBT * next_one / (earlier - next_one))
    least = 0.0 if open_ended else max(0.0, now - ahead * next_one)
    found = {"brought by the last stretch": brought, "by the one before": earlier}
    return Measurement(now, checked, found | dict(details or {}), (min(least, now), now))


def _scatter(values: Float[np.ndarray, "record"]) -> float:
    """The variance about a straight line."""
    place = np.arange(len(values)) - (len(values) - 1) / 2
    slope = place @ values / max(place @ place, 1.0)
    return float((values - values.mean() - slope * place).var())
