"""Training on finite prompts follows training on infinite ones, for a time."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Comparison, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.regression_data import correlated, independent
from attractor.papers.large_prompt.regression_flows import gaps, limit_flow, path_of
from attractor.papers.large_prompt.regression_hypotheses import (
    BALANCED,
    FIXED_TIME,
    FOLLOWED,
    SMALL_START,
)
from attractor.prompts.files.regression import RegressionCase

_LENGTHS = (2**24, 2**32)
_ERROR = 1e-9
"""Of a flow."""
_OTHER_START = 1.1
_Path = Float[np.ndarray, "time parameter"]
"""``A`` and ``b`` along a flow."""


def _limit_path(case: RegressionCase, seed: int) -> _Path:
    return path_of(limit_flow(case))


def _near_path(case: RegressionCase, seed: int) -> _Path:
    """The path from a start that is a tenth larger."""
    return _limit_path(case.replace(initial_scale=_OTHER_START * case.initial_scale), seed)


def _ratio(case: RegressionCase, seed: int, path: _Path) -> Measurement:
    """The ratio of distances from a path, of the flow at the longer length and at the shorter."""
    before, after = gaps(case, _LENGTHS, path).max(axis=1)
    details = {"at 2^24 tokens": float(before), "at 2^32 tokens": float(after)}
    ratio = max(after - _ERROR, 0.0) / max(before, _ERROR)
    return Measurement(float(ratio), len(_LENGTHS), details)


TRAJECTORY_STABILITY = REGRESSION_CLAIMS.claim(
    "trajectory-stability",
    "over a fixed time flows on finite prompts tend to that on infinite ones",
    statement="stability of gradient flow over a fixed time",
    assuming=(FOLLOWED, BALANCED, SMALL_START, FIXED_TIME),
    contrast=Comparison(
        "largest distance of the flow on prompts of 2^32 tokens from that on infinite ones, over "
        "the same at 2^24 tokens",
        _ratio,
        _limit_path,
        "the same for distances from the flow on infinite prompts from a start a tenth larger",
        _near_path,
        bound=0.3,
        reason="the distance falls like a power of the length, which grows by 256, less powers of "
        "log L: by some 10 for correlated inputs, whose scores are wide on the way; on shorter "
        "prompts 64 inputs show no limit",
    ),
    data=lambda seed: [
        independent(5, time=2.0),
        independent(5, time=3.0),
        independent(2, time=3.0),
        correlated().replace(time=2.0),
    ],
    note="the published bound g(L) t exp(beta t) says nothing for t to infinity, "
    "and nothing holds there: flows on finite prompts go on to another point",
)
