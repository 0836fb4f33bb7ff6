"""Predictors on finite prompts, side by side: softmax, linear attention, ridge, two heads."""

from __future__ import annotations

import math
from collections.abc import Callable

from attractor.papers.claim import Comparison, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.regression_data import correlated, independent, noisy
from attractor.papers.large_prompt.regression_hypotheses import (
    INDEPENDENT,
    SHORT_PROMPTS,
    SOME_NOISE,
    SOME_TOKENS,
)
from attractor.papers.ledger.claim import once
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.regression import (
    SoftmaxOptimum,
    opposite_heads_optimum,
    small_score_optimum,
    softmax_risk,
)
from attractor.prompts.regression.flows.isotropic_flow import isotropic_optimum
from attractor.prompts.regression.risks.linear_attention import linear_attention_optimum, ridge_risk

_SAMPLES = 4000
_ERRORS = 4.5
_NARROWER = 0.64
"""Scores of a pair that is not the best, over those of the best."""


@once
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
    exchange="it names an order, whose only neighbors are exchanges",
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
    exchange="a risk that is larger than that of one head is beaten too",
)


@once
def _best_pair(case: RegressionCase, length: int) -> SoftmaxOptimum:
    """The best two opposite heads."""
    return opposite_heads_optimum(case.task, length)


def _pair(case: RegressionCase, length: int) -> float:
    """Their risk."""
    return _best_pair(case, length).risk


def _narrow_pair(case: RegressionCase, length: int) -> float:
    """The risk of heads with the same product of scores and values, and narrower scores."""
    best = _best_pair(case, length).blocks
    narrow = best._replace(
        key_query=_NARROWER * best.key_query, value_label=best.value_label / _NARROWER
    )
    return float(softmax_risk(case.task, narrow, length).risk)


def _on_the_way(
    case: RegressionCase, seed: int, risk: Callable[[RegressionCase, int], float]
) -> Measurement:
    """The least share of the way from linear attention on one token less to that on as many."""
    shares, details = [], {}
    for length in case.lengths:
        less, as_many, found = _linear(case, length - 1), _linear(case, length), risk(case, length)
        shares.append(min(less - found, found - as_many) / (less - as_many))
        details[f"at {length} tokens"] = f"{less:.5g}, {found:.5g}, {as_many:.5g}"
    return Measurement(min(shares), len(shares), details)


FINITE_OPPOSITE_HEADS = REGRESSION_CLAIMS.claim(
    "finite-opposite-heads",
    "on short prompts two opposite heads are best with finite scores, behind linear attention",
    statement="two softmax heads of opposite signs on finite prompts",
    assuming=(SHORT_PROMPTS,),
    contrast=Comparison(
        "least distance of their risk from that of linear attention on as many tokens and on one "
        "less, over the distance of the two",
        _on_the_way,
        lambda *_: _pair,
        f"the same of heads with scores of {_NARROWER} of these and values of one over that",
        lambda *_: _narrow_pair,
        bound=0.1,
        reason="all risks are exact; small scores are linear attention on one token less",
        sense=">=",
    ),
    data=lambda seed: [correlated().replace(lengths=(5, 10)), noisy(independent(3, (5, 10)))],
    note="derived here, and no statement of the paper, whose heads are single. On long prompts the "
    "best scores are small and the share falls to zero",
)
