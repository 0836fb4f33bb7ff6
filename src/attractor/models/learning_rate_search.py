"""The same search for a learning rate, whatever the optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.support.checks import check_count, check_function, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import seeded

_FEWEST = 3


@dataclass(frozen=True, eq=False)
class LearningRateSearch:
    """Learning rates that were tried, and their scores.

    Attributes:
        rates: The rates, increasing.
        scores: The score of each, larger is better; NaN where training diverged.
    """

    rates: Float[np.ndarray, "tries"]
    scores: Float[np.ndarray, "tries"]

    @property
    def best(self) -> float:
        """The rate of the highest score; of equal ones the smallest.

        Raises:
            InvalidInputError: If training diverged at every rate.
        """
        return float(self.rates[self._place])

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or the largest tried, so that more might be had."""
        return self._place in (0, len(self.rates) - 1)

    @property
    def _place(self) -> int:
        if np.isnan(self.scores).all():
            raise InvalidInputError(
                "guess", "training diverged at every rate tried", "Give a smaller one"
            )
        return int(np.nanargmax(self.scores))


def search_learning_rate(
    score: Callable[[float], float],
    guess: float,
    *,
    tries: int = 6,
    factor: float = math.sqrt(10),
) -> LearningRateSearch:
    """Searches for a learning rate with a fixed number of tries.

    It tries the guess and the rates on both sides of it. While the best rate is at the edge of
    those tried, it goes on beyond that edge; else it halves, on a logarithmic scale, the wider of
    the two gaps beside the best rate.

    Args:
        score: The score of a learning rate, such as accuracy on a validation split; NaN if
            training diverges.
        guess: The first rate tried, positive.
        tries: Number of calls of ``score``, 3 at least.
        factor: The ratio of neighboring rates at first, above 1.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """
    check_function("score", score, "Give a function from a learning rate to a score")
    guess = check_number("guess", guess, above=0.0, example=0.01)
    factor = check_number("factor", factor, above=1.0, example=3.0)
    tries = check_count("tries", tries, _FEWEST)
    score = seeded(purpose="scores of learning rates", alone=False)(score)
    found = {rate: float(score(rate)) for rate in (guess, guess * factor, guess / factor)}
    while len(found) < tries:
        rate = _next(found, factor)
        found[rate] = float(score(rate))
    rates = np.array(sorted(found))
    return LearningRateSearch(rates, np.array([found[rate] for rate in rates]))


def _next(found: dict[float, float], factor: float) -> float:
    rates = sorted(found)
    scores = [-math.inf if math.isnan(found[rate]) else found[rate] for rate in rates]
    best = scores.index(max(scores))
    if best == 0:  # where all diverged, too
        return rates[0] / factor
    if best == len(rates) - 1:
        return rates[-1] * factor
    below, here, above = rates[best - 1 : best + 2]
    wider = below if here / below >= above / here else above
    return math.sqrt(wider * here)
