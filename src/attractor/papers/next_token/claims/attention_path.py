"""The path of attention: its norm and direction at every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.two_stages.two_stage_measures import direction_distance
from attractor.papers.claim import Comparison, Exponent, Measurement
from attractor.papers.corpus_hypotheses import (
    CHOICE,
    FREQUENT_OPTIMAL,
    ORTHONORMAL,
    REALIZABLE,
    ZERO_START,
)
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims._published_bounds import (
    Approach,
    direction_contrast,
    norm_contrast,
)
from attractor.papers.next_token.claims.closed_form import raised_alone
from attractor.papers.next_token.data import grammar, missing_relations, random_orders, rolled_out
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


def _norms_over_way(case: CorpusCase, seed: int) -> Float[np.ndarray, "step"]:
    found = measured(case, seed)
    return found["norm"].to_numpy() / (found["step"].to_numpy() * plan(case).rates[1])


ATTENTION_NORM = CLAIMS.claim(
    "attention-norm",
    "the norm of attention lies between t eta/(2 |W*|) and t eta",
    statement="norm of attention",
    assuming=ASSUMPTIONS,
    contrast=norm_contrast(
        _norms_over_way,
        attention_solution,
        "rounding; where W goes straight, the upper bound is met with equality",
    ),
    data=_data,
    holding=lambda: random_orders(0),
    note="what is proved has the length of the longest context in the lower bound as well, which "
    "follows from this one. It never binds: the norm is about 2 |W*| times as large",
    exchange="twice either bound is one: the norm is t eta to one per cent",
)


def _distance(case: CorpusCase, seed: int, direction: Float[np.ndarray, "d d"]) -> Measurement:
    return Measurement(float(direction_distance(attention_weights(case, seed)[-1], direction)))


ATTENTION_DIRECTION = CLAIMS.claim(
    "attention-direction",
    "attention tends to the direction of its max-margin solution",
    statement="directional convergence of attention",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "1 - cos of attention and the max-margin solution in the end",
        _distance,
        lambda case, seed: attention_solution(case).W,
        "1 - cos to scores of one for optimal tokens and zero for all others",
        lambda case, seed: case.table.T @ raised_alone(case) @ case.table,
        bound=2e-3,
        reason="what is not along W* stays as large, while the norm grows to more than 14 times "
        "that of W*; the solutions of other constraints are 1e-2 or more away",
    ),
    data=_data,
    note="the published bound on 1 - cos says nothing yet, see attention-direction-bound",
)


def _approach(case: CorpusCase, seed: int) -> Approach:
    """With the published bound but for its constant; a distance that is rounding counts as none."""
    found, norm = measured(case, seed), float(attention_solution(case).value)
    steps, distance = found["step"].to_numpy().astype(float), found["distance"].to_numpy()
    shape = len(case.samples) * longest_context(case) ** 4 * norm**4 * np.log(steps) ** 2
    distance = np.where(distance < _LEAST, 0.0, distance)
    return Approach(steps, distance, shape / (steps * plan(case).rates[1]))


ATTENTION_DIRECTION_BOUND = CLAIMS.claim(
    "attention-direction-bound",
    "1 - cos of attention and its solution is at most 54 N L^4 |W*|^4 log(t)^2/(t eta)",
    statement="directional convergence of attention, the bound",
    assuming=ASSUMPTIONS,
    contrast=direction_contrast(_approach, 54.0, "54 N L^4 |W*|^4 log(t)^2/(t eta)"),
    data=_data,
    note="as printed. It never binds: a constant ten million times smaller would do, and the bound "
    "is more than one, and so says nothing, up to about 1e12 of the published steps; it falls like "
    "log(t)^2/t while 1 - cos falls like 1/t^2. One optimal and one other token under every query "
    "make the direction exact",
    exchange="an upper bound, of which twice is one as well",
)


def _off_exponent(case: CorpusCase, seed: int, expected: Exponent) -> Measurement:
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
    contrast=Comparison(
        "distance of the exponent of 1 - cos in t from -2",
        _off_exponent,
        lambda *_: Exponent(-2),
        "distance of the exponent from -1, that of the published bound",
        lambda *_: Exponent(-1),
        bound=0.1,
        reason="what is not along W* stays, while the norm grows; lower orders of 1/t",
    ),
    data=_data,
    note="derived, not quoted: published is an upper bound that falls like log(t)^2/t, see "
    "attention-direction-bound; one optimal and one other token under every query make the "
    "direction exact, and the claim vacuous",
)
