"""The risk in training on finite prompts: it falls, and vanishes as they grow."""

from __future__ import annotations

import numpy as np

from attractor.files.regression import RegressionCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.regression_data import independent
from attractor.papers.large_prompt.regression_flows import finite_flow, limit_flow
from attractor.papers.large_prompt.regression_hypotheses import (
    BALANCED,
    INDEPENDENT,
    LONG_TRAINING,
    SEVERAL_LENGTHS,
    SMALL_START,
    SOME_TOKENS,
)
from attractor.prompt.regression.isotropic_flow import isotropic_finite_flow

_START = (INDEPENDENT, BALANCED, SMALL_START, SOME_TOKENS)
_EVERY, _INSTANT = 2, 1e-6
_SHORT = (64, 256)


def _share(case: RegressionCase, length: int) -> Measurement:
    """The trained risk over that of predicting zero."""
    flow = finite_flow(case, length)
    details = {"risk": float(flow.risk[-1]), "at length": length, "b": float(flow.b[-1])}
    return Measurement(float(flow.risk[-1] / case.task.risk_of_zero), details=details)


def _decay(case: RegressionCase, *, longer: bool) -> Measurement:
    """The trained risk of the longest prompts over that of the shortest, over sqrt(L / L')."""
    first, last = case.lengths[0], case.lengths[-1]
    found, before = _share(case, last if longer else first), _share(case, first)
    ratio = found.value / before.value * (last / first) ** 0.5
    return Measurement(ratio, 2, {**found.details, "over": before.details["risk"]})


TRAINED_RISK_LIMIT = REGRESSION_CLAIMS.claim(
    "trained-risk-limit",
    "trained to the end, the risk on finite prompts tends to zero as they grow",
    statement="training on long prompts reaches the optimal risk",
    assuming=(*_START, SEVERAL_LENGTHS, LONG_TRAINING),
    contrast=Contrast(
        "fall of the trained risk from the shortest prompts to the longest, over that of L^(-1/2)",
        lambda case, seed: _decay(case, longer=True),
        "the same with prompts kept at the shortest length, however long training is",
        lambda case, seed: _decay(case, longer=False),
        bound=1.0,
        reason="the theorem gives no rate; the leading order is 1/L, which prompts of some hundred "
        "tokens do not reach yet, so half of that power is required",
    ),
    data=lambda seed: [independent(5, _SHORT), independent(5), independent(2)],
    note="nothing is said about parameters, which go elsewhere. For d = 5 the trained risk is "
    ".5191 at 64 tokens and .0451 at 1,024, where the balanced head has .0933",
)


def _largest_rise(case: RegressionCase, *, elsewhere: bool) -> Measurement:
    """The largest rise of the risk between recorded times, over that of predicting zero."""
    rises = [
        np.diff(_along_limit(case, length) if elsewhere else finite_flow(case, length).risk).max()
        for length in case.lengths
    ]
    return Measurement(float(max(rises)) / case.task.risk_of_zero, len(rises))


def _along_limit(case: RegressionCase, length: int) -> np.ndarray:
    """The risk of finite prompts along the flow on infinite ones.

    That keeps the balance, so that each of its heads is a start of a flow on finite prompts.
    """
    d, noise, times = case.task.dimension, case.task.label_noise, np.array([0, _INSTANT])
    starts = limit_flow(case).blocks.value_label[::_EVERY]
    flows = [isotropic_finite_flow(d, length, float(b), times, label_noise=noise) for b in starts]
    return np.array([flow.risk[0] for flow in flows])


RISK_FALLS = REGRESSION_CLAIMS.claim(
    "risk-falls",
    "gradient flow on the risk of finite prompts never raises it",
    statement="training on long prompts reaches the optimal risk, the risk falls on the way",
    assuming=_START,
    contrast=Contrast(
        "largest rise of the risk between recorded times, over the risk of predicting zero",
        lambda case, seed: _largest_rise(case, elsewhere=False),
        "the same of the risk of finite prompts along the flow on infinite ones",
        lambda case, seed: _largest_rise(case, elsewhere=True),
        bound=1e-9,
        reason="its slope is minus the squared gradient; steps are exact to 1e-9",
    ),
    data=lambda seed: [independent(5, _SHORT), independent(5), independent(2)],
    note="the flow on infinite prompts passes the best head of finite ones, which shrinks toward "
    "the mean of the prompt on purpose",
)
