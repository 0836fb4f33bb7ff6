"""The path of attention: its norm and direction at every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attractor.files.corpus import CorpusCase
from attractor.next_token.two_stage_measures import direction_distance
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.corpus_hypotheses import (
    CHOICE,
    FREQUENT_OPTIMAL,
    ORTHONORMAL,
    REALIZABLE,
    ZERO_START,
)
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims.closed_form import raised_alone
from attractor.papers.next_token.data import (
    grammar,
    missing_relations,
    random_orders,
    rolled_out,
)
from attractor.papers.next_token.training import (
    attention_solution,
    attention_weights,
    exponent,
    longest_context,
    measured,
    plan,
)

ASSUMPTIONS = (REALIZABLE, ORTHONORMAL, CHOICE, FREQUENT_OPTIMAL, ZERO_START)
_LEAST = 1e-20
"""``1 - cos`` below which a direction is exact, to rounding."""


def _data(seed: int) -> Sequence[CorpusCase]:
    return [
        grammar(),
        *(random_orders(number) for number in range(seed, seed + 2)),
        rolled_out(seed),
        missing_relations(),
    ]


def _norm_excess(case: CorpusCase, seed: int, *, upper: float | None) -> Measurement:
    """The excess of the norm over ``t eta`` beyond its bounds, or over the lower one alone."""
    found = measured(case, seed)
    norms = found["norm"].to_numpy() / (found["step"].to_numpy() * plan(case).rates[1])
    least = 1 / (2 * float(attention_solution(case).value))
    if upper is None:
        return Measurement(float((norms - least).max()), len(norms))
    details = {"least |W|/(t eta)": float(norms.min()), "lower bound": least}
    return Measurement(float(np.maximum(norms - upper, least - norms).max()), len(norms), details)


ATTENTION_NORM = CLAIMS.claim(
    "attention-norm",
    "the norm of attention lies between t eta/(2 |W*|) and t eta",
    statement="norm of attention",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "largest excess of |W(t)|/(t eta) over its bounds",
        lambda case, seed: _norm_excess(case, seed, upper=1.0),
        "its largest excess over the lower bound, taken for an upper one",
        lambda case, seed: _norm_excess(case, seed, upper=None),
        bound=1e-10,
        reason="rounding; where W goes straight, the upper bound is met with equality",
    ),
    data=_data,
    note="what is proved has the length of the longest context in the lower bound as well, which "
    "follows from this one",
)


def _distance(case: CorpusCase, seed: int) -> Measurement:
    found = float(measured(case, seed)["distance"][-1])
    norm, steps = float(attention_solution(case).value), plan(case).steps[1]
    bound = 54 * len(case.samples) * longest_context(case) ** 4 * norm**4 * np.log(steps) ** 2
    bound /= steps * plan(case).rates[1]
    return Measurement(found, 1, {"published bound on 1 - cos": float(bound)})


def _distance_from_raised(case: CorpusCase, seed: int) -> Measurement:
    wrong = case.table.T @ raised_alone(case) @ case.table
    return Measurement(float(direction_distance(attention_weights(case, seed)[-1], wrong)))


ATTENTION_DIRECTION = CLAIMS.claim(
    "attention-direction",
    "attention tends to the direction of its max-margin solution",
    statement="directional convergence of attention",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "1 - cos of attention and the max-margin solution in the end",
        _distance,
        "1 - cos to scores of one for optimal tokens and zero for all others",
        _distance_from_raised,
        bound=2e-3,
        reason="what is not along W* stays as large, while the norm grows to more than 14 times "
        "that of W*; the solutions of other constraints are 1e-2 or more away",
    ),
    data=_data,
    note="the published bound on 1 - cos, 54 N L^4 |W*|^4 log(t)^2/(t eta), is more than one, and "
    "so says nothing, up to about 1e12 steps",
)


def _off_exponent(case: CorpusCase, seed: int, expected: float) -> Measurement:
    """Distance of the exponent of ``1 - cos`` in t from another."""
    found = measured(case, seed)
    distance = found["distance"].to_numpy()
    if distance[-1] < _LEAST:  # exact from the first step
        return Measurement(np.nan, 0)
    fitted = exponent(distance, found["step"].to_numpy().astype(float))
    return Measurement(abs(fitted - expected), 1, {"exponent": fitted})


ATTENTION_DIRECTION_RATE = CLAIMS.claim(
    "attention-direction-rate",
    "1 - cos of attention and its solution falls like 1/t^2",
    statement="directional convergence of attention, its rate",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "distance of the exponent of 1 - cos in t from -2",
        lambda case, seed: _off_exponent(case, seed, -2.0),
        "distance of the exponent from -1, that of the published bound",
        lambda case, seed: _off_exponent(case, seed, -1.0),
        bound=0.1,
        reason="what is not along W* stays, while the norm grows; lower orders of 1/t",
    ),
    data=_data,
    note="published is the upper bound log(t)^2/t, which the measured rate satisfies; one optimal "
    "and one other token under every query make the direction exact, and the claim vacuous",
)
