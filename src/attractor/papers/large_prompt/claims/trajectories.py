"""Training on finite prompts follows training on infinite ones, for a time."""

from __future__ import annotations

import numpy as np

from attractor.files.regression import RegressionCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.regression_data import independent
from attractor.papers.large_prompt.regression_flows import gaps
from attractor.papers.large_prompt.regression_hypotheses import (
    BALANCED,
    FIXED_TIME,
    INDEPENDENT,
    SEVERAL_LENGTHS,
    SMALL_START,
    SOME_TOKENS,
)
from attractor.prompt.regression._trained_limit import trained_limit
from attractor.prompt.regression.isotropic_flow import isotropic_optimum


def _gaps_of_limits(case: RegressionCase, seed: int) -> Measurement:
    """The distances of the limits of the flows, from the best heads and the limit."""
    limit = trained_limit(case.task).blocks
    d = case.task.dimension
    found = []
    for length in case.lengths:
        best = isotropic_optimum(d, length, label_noise=case.task.label_noise)
        squares = d * (best.a - limit.key_query[0, 0]) ** 2
        found.append(np.sqrt(squares + (best.b - limit.value_label) ** 2))
    return _of_gaps(case, np.array(found))


def _of_gaps(case: RegressionCase, found: np.ndarray) -> Measurement:
    details = {
        f"at {length} tokens": float(gap) for length, gap in zip(case.lengths, found, strict=True)
    }
    return Measurement(float((found[1:] / found[:-1]).max()), len(found), details)


TRAJECTORY_STABILITY = REGRESSION_CLAIMS.claim(
    "trajectory-stability",
    "over a fixed time flows on finite prompts tend to the flow on infinite ones",
    statement="stability of gradient flow over a fixed time",
    assuming=(INDEPENDENT, BALANCED, SMALL_START, SEVERAL_LENGTHS, SOME_TOKENS, FIXED_TIME),
    contrast=Contrast(
        "largest ratio of the distance of the flows at one length to that at the one before",
        lambda case, seed: _of_gaps(case, gaps(case).max(axis=1)),
        "the same of where the flows converge, as if the time could be taken to infinity first",
        _gaps_of_limits,
        bound=0.95,
        reason="lengths grow by factors of four, and the distance falls like a root of them, less "
        "powers of log L",
    ),
    data=lambda seed: [
        independent(5, time=2.0),
        independent(5, time=3.0),
        independent(2, time=3.0),
    ],
    note="the published bound g(L) t exp(beta t) says nothing for t to infinity, and nothing holds "
    "there: flows on finite prompts go on to another point",
)
