"""Predictors on finite prompts, side by side: softmax, linear attention, ridge, two heads."""

from __future__ import annotations

import math
from collections.abc import Callable

from attractor.files.regression import RegressionCase
from attractor.papers.claim import Comparison, Measurement
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


def _linear(case: RegressionCase, length: int) -> float:
    """The risk of the best linear attention."""
    return linear_attention_optimum(case.task, length).risk


def _order(case: RegressionCase, seed: int, falling: tuple[str, str]) -> Measurement:
    """The smallest relative distance between predictors that are next to one another in risk.

    Args:
        case: The data.
        seed: Names the prompts that the risk of ridge regression is averaged over.
        falling: Names of the attentions, that of the larger risk first; ridge regression is last.
    """
    smallest, details = math.inf, {}
    for length in case.lengths:
        risks = {"softmax": _best(case, length), "linear": _linear(case, length)}
        ridge = ridge_risk(case.task, length, samples=_SAMPLES, seed=seed)
        above = float(ridge.risk + _ERRORS * ridge.standard_error)
        first, second = (risks[name] for name in falling)
        details[f"at {length} tokens"] = f"{first:.4g}, {second:.4g}, {float(ridge.risk):.4g}"
        smallest = min(smallest, first / second - 1, min(first, second) / above - 1)
    return Measurement(smallest, 2 * len(case.lengths), details)


RISK_ORDER = REGRESSION_CLAIMS.claim(
    "order-of-predictors",
    "on finite prompts ridge regression beats linear attention, and that one softmax head",
    statement="comparison of softmax attention, linear attention and ridge regression",
    assuming=(INDEPENDENT, SOME_TOKENS, SOME_NOISE),
    contrast=Comparison(
        "smallest risk of softmax over linear attention, and of that over ridge regression, less 1",
        _order,
        lambda *_: ("softmax", "linear"),
        "the same with softmax and linear attention exchanged",
        lambda *_: ("linear", "softmax"),
        bound=0.0,
        reason="risks of attention are exact, and that of ridge regression is taken 4.5 standard "
        "errors higher",
        sense=">=",
    ),
    data=lambda seed: [
        noisy(independent(5, (64, 256, 1024))),
        noisy(independent(2, (16, 256))),
    ],
    note="all of the best of their kind, of softmax among heads with A = a I and no score from "
    "labels or value of inputs; the distance of softmax from linear attention closes like "
    "one over the length. Where labels have no noise ridge regression is exact",
)


def _below(
    case: RegressionCase, seed: int, risk: Callable[[RegressionCase, int], float]
) -> Measurement:
    """The largest risk of two small opposite heads, over that of another predictor, less 1."""
    largest, details = -math.inf, {}
    for length in case.lengths:
        pair, other = small_score_optimum(case.task, length).risk, risk(case, length)
        details[f"at {length} tokens"] = f"{pair:.5g} and {other:.5g}"
        largest = max(largest, pair / other - 1)
    return Measurement(largest, len(case.lengths), details)


TWO_HEADS_BEAT_ONE = REGRESSION_CLAIMS.claim(
    "two-heads-beat-one",
    "two softmax heads of opposite signs reach a lower risk than the best single one",
    statement="comparison of one softmax head with two heads of opposite signs",
    assuming=(INDEPENDENT, SOME_TOKENS),
    contrast=Comparison(
        "largest risk of two opposite heads of small scores over that of the best head, less 1",
        _below,
        lambda *_: _best,
        "the same over that of linear attention on as many tokens, which they reach on one more",
        lambda *_: _linear,
        bound=0.0,
        reason="both risks are exact",
    ),
    data=lambda seed: [independent(5, (64, 256, 1024)), noisy(independent(5, (64, 256, 1024)))],
    note="the single head is the best with A = a I and no score from labels or value of inputs. "
    "It adds the mean of the prompt to its prediction, opposite signs cancel it; "
    "no statement of the paper, whose heads are single",
)
