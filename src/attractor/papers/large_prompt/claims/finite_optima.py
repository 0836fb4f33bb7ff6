"""Predictors on finite prompts, side by side: softmax, linear attention, ridge, two heads."""

from __future__ import annotations

import math

from attractor.files.regression import RegressionCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.regression_data import independent, noisy
from attractor.papers.large_prompt.regression_hypotheses import (
    INDEPENDENT,
    SOME_NOISE,
    SOME_TOKENS,
)
from attractor.papers.once import once_a_case
from attractor.prompt.regression._opposite_heads import small_score_optimum
from attractor.prompt.regression.isotropic_flow import isotropic_optimum
from attractor.prompt.regression.linear_attention import linear_attention_optimum
from attractor.prompt.regression.ridge import ridge_risk

_SAMPLES = 4000
_ERRORS = 4.5


@once_a_case
def _best(case: RegressionCase, length: int) -> float:
    """The risk of the best softmax head."""
    noise = case.task.label_noise
    return isotropic_optimum(case.task.dimension, length, label_noise=noise).risk


def _order(case: RegressionCase, seed: int, *, swapped: bool) -> Measurement:
    """The smallest relative distance between predictors that are next to one another in risk."""
    smallest, details = math.inf, {}
    for length in case.lengths:
        softmax = _best(case, length)
        linear = linear_attention_optimum(case.task, length).risk
        ridge = ridge_risk(case.task, length, samples=_SAMPLES, seed=seed)
        above = float(ridge.risk + _ERRORS * ridge.standard_error)
        details[f"at {length} tokens"] = f"{softmax:.4g}, {linear:.4g}, {float(ridge.risk):.4g}"
        first, second = (linear, softmax) if swapped else (softmax, linear)
        smallest = min(smallest, first / second - 1, min(first, second) / above - 1)
    return Measurement(smallest, 2 * len(case.lengths), details)


RISK_ORDER = REGRESSION_CLAIMS.claim(
    "order-of-predictors",
    "on finite prompts ridge regression beats linear attention, and that one softmax head",
    statement="comparison of softmax attention, linear attention and ridge regression",
    assuming=(INDEPENDENT, SOME_TOKENS, SOME_NOISE),
    contrast=Contrast(
        "smallest risk of softmax over linear attention, and of that over ridge regression, less 1",
        lambda case, seed: _order(case, seed, swapped=False),
        "the same with softmax and linear attention exchanged",
        lambda case, seed: _order(case, seed, swapped=True),
        bound=0.0,
        reason="risks of attention are exact, and that of ridge regression is taken 4.5 standard "
        "errors higher",
        sense=">=",
    ),
    data=lambda seed: [
        noisy(independent(5, (64, 256, 1024))),
        noisy(independent(2, (16, 256))),
    ],
    note="all of the best of their kind; the distance of softmax from linear attention closes like "
    "one over the length. Where labels have no noise ridge regression is exact",
)


def _below(case: RegressionCase, *, linear: bool) -> Measurement:
    """The largest risk of two small opposite heads, over that of another predictor, less 1."""
    largest, details = -math.inf, {}
    for length in case.lengths:
        pair = small_score_optimum(case.task, length).risk
        other = linear_attention_optimum(case.task, length).risk if linear else _best(case, length)
        details[f"at {length} tokens"] = f"{pair:.5g} and {other:.5g}"
        largest = max(largest, pair / other - 1)
    return Measurement(largest, len(case.lengths), details)


TWO_HEADS_BEAT_ONE = REGRESSION_CLAIMS.claim(
    "two-heads-beat-one",
    "two softmax heads of opposite signs reach a lower risk than the best single one",
    statement="comparison of one softmax head with two heads of opposite signs",
    assuming=(INDEPENDENT, SOME_TOKENS),
    contrast=Contrast(
        "largest risk of two opposite heads of small scores over that of the best head, less 1",
        lambda case, seed: _below(case, linear=False),
        "the same over that of linear attention on as many tokens, which they reach on one more",
        lambda case, seed: _below(case, linear=True),
        bound=0.0,
        reason="both risks are exact",
    ),
    data=lambda seed: [independent(5, (64, 256, 1024)), noisy(independent(5, (64, 256, 1024)))],
    note="a single head adds the mean of the prompt to its prediction, opposite signs cancel it; "
    "no statement of the paper, whose heads are single",
)
