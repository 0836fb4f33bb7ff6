"""Printed bounds on the norm of a layer and on ``1 - cos`` to its solution, at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.corpora.files.corpus import CorpusCase
from attractor.margin import Solution
from attractor.papers.claim import Comparison, Measurement


class Approach(NamedTuple):
    """How near a direction comes to that of its solution, and the shape of a bound on it.

    Attributes:
        steps: The steps t, one of which is the first.
        distance: ``1 - cos`` after each.
        shape: The bound after each, but for a constant factor.
    """

    steps: Float[np.ndarray, "step"]
    distance: Float[np.ndarray, "step"]
    shape: Float[np.ndarray, "step"]


def norm_contrast(
    over_way: Callable[[CorpusCase, int], Float[np.ndarray, "step"]],
    solution: Callable[[CorpusCase], Solution],
    reason: str,
) -> Comparison[CorpusCase, tuple[float, float]]:
    """The excess of a norm over its published bounds, and over a lower one that is wrong.

    The wrong one has the norm of the solution as a factor and not as a divisor: where that is two
    or less, it is a bound as well.

    Args:
        over_way: Gives ``|W(t)| / (t eta)`` at every record but the start.
        solution: Gives the max-margin solution of the layer.
        reason: Why its tolerance.
    """

    def excess(case: CorpusCase, seed: int, bounds: tuple[float, float]) -> Measurement:
        norms, (least, most) = over_way(case, seed), bounds
        details = {"least |W|/(t eta)": float(norms.min()), "lower bound": least}
        return Measurement(
            float(np.maximum(norms - most, least - norms).max()), len(norms), details
        )

    def norm(case: CorpusCase) -> float:
        return float(solution(case).value)

    return Comparison(
        "largest excess of |W(t)|/(t eta) over its bounds",
        excess,
        lambda case, seed: (1 / (2 * norm(case)), 1.0),
        "its largest excess with t eta |W*|/2 as the lower bound",
        lambda case, seed: (norm(case) / 2, 1.0),
        bound=1e-10,
        reason=reason,
    )


def direction_contrast(
    approach: Callable[[CorpusCase, int], Approach], constant: float, words: str
) -> Comparison[CorpusCase, float]:
    """``1 - cos`` over its published bound, and over one that it would have to fall to meet.

    Args:
        approach: Gives the way to the solution, and the bound but for its constant.
        constant: The published constant.
        words: The bound, as a formula.
    """
    return Comparison(
        f"largest 1 - cos from the second step on, over {words}",
        lambda case, seed, factor: _over_bound(approach(case, seed), factor),
        lambda *_: constant,
        "the same with a constant with which 1 - cos would fall to a tenth in the second step",
        lambda case, seed: _falling_to_a_tenth(approach(case, seed)),
        bound=1.0,
        reason="the bound itself",
    )


def _over_bound(found: Approach, constant: float) -> Measurement:
    """The largest ``1 - cos`` from the second step on, over its bound with a constant."""
    late = found.steps >= 2
    least = float((found.distance[late] / found.shape[late]).max())
    if not least:  # the direction is exact
        return Measurement(np.nan, 0)
    details = {
        "least constant that would do": least,
        "bound in the end": float(constant * found.shape[-1]),
        "1 - cos in the end": float(found.distance[-1]),
    }
    return Measurement(least / constant, int(late.sum()), details)


def _falling_to_a_tenth(found: Approach) -> float:
    """The constant with which ``1 - cos`` would have to fall to a tenth in the second step."""
    first, second = np.searchsorted(found.steps, [1, 2])
    return float(found.distance[first] / (10 * found.shape[second]))
