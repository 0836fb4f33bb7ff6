"""Training on finite prompts follows training on infinite ones, for a time."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.files.regression import RegressionCase
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.regression_data import independent
from attractor.papers.large_prompt.regression_flows import gaps, limit_flow
from attractor.papers.large_prompt.regression_hypotheses import (
    BALANCED,
    FIXED_TIME,
    INDEPENDENT,
    SMALL_START,
)

_LENGTHS = (4096, 65_536, 1_048_576)
_OTHER_START = 1.1
_Path = Float[np.ndarray, "2 time"]
"""``||A||`` and ``b`` along a flow."""


def _limit_path(case: RegressionCase, seed: int) -> _Path:
    blocks = limit_flow(case).blocks
    return np.stack([np.linalg.norm(blocks.key_query, axis=(-2, -1)), blocks.value_label])


def _near_path(case: RegressionCase, seed: int) -> _Path:
    """The path from a start that is a tenth larger."""
    return _limit_path(case.replace(initial_scale=_OTHER_START * case.initial_scale), seed)


def _largest_ratio(case: RegressionCase, seed: int, path: _Path) -> Measurement:
    """The largest ratio of distances from a path, of the flows at one length and the one before."""
    found = gaps(case, _LENGTHS, path).max(axis=1)
    details = {
        f"at {length:,} tokens": float(gap) for length, gap in zip(_LENGTHS, found, strict=True)
    }
    return Measurement(float((found[1:] / found[:-1]).max()), len(found), details)


TRAJECTORY_STABILITY = REGRESSION_CLAIMS.claim(
    "trajectory-stability",
    "over a fixed time flows on prompts of independent inputs tend to that on infinite ones",
    statement="stability of gradient flow over a fixed time",
    assuming=(INDEPENDENT, BALANCED, SMALL_START, FIXED_TIME),
    contrast=Comparison(
        "largest ratio of the distance of flows on prompts of 65,536 and 1,048,576 tokens from the "
        "flow on infinite ones to that at a sixteenth of the length",
        _largest_ratio,
        _limit_path,
        "the same of the distance from the flow on infinite prompts from a start a tenth larger",
        _near_path,
        bound=0.5,
        reason="lengths grow by factors of 16, and the distance falls like a power of them, about "
        "a half, less powers of log L",
    ),
    data=lambda seed: [
        independent(5, time=2.0),
        independent(5, time=3.0),
        independent(2, time=3.0),
    ],
    note="the published bound g(L) t exp(beta t) says nothing for t to "
    "infinity, and nothing holds there: flows on finite prompts go on to another point",
)
