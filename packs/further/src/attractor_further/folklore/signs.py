"""Sign momentum and Lion, and the largest margin in l_inf; step sizes that decay."""

from __future__ import annotations

import numpy as np

from attractor.files import Case
from attractor.geometry import Frobenius, Lp
from attractor.papers import Comparison, Measurement, once
from attractor_further.folklore.margins import (
    BOUND,
    CLAIMS,
    REASON,
    assuming,
    last_matrices,
    margin_claim,
    missing_margin,
    three,
)

_SIGN_MOMENTUM = "sign momentum:learning_rate=0.03"
_LION = "lion:learning_rate=0.002"
_LARGE = "sign momentum:learning_rate=0.3"
_LONG = 100_000

SIGN_MOMENTUM = margin_claim(
    "sign-momentum-margin",
    "sign descent with momentum takes attention to the largest margin in l_inf",
    Lp(np.inf),
    Frobenius(),
    three(_SIGN_MOMENTUM),
    assuming("W", "sign momentum"),
    optimizer=_SIGN_MOMENTUM,
    statement="momentum leaves the margin of sign descent as it is",
    note="as long as step / (1 - decay), here 0.3, is below about 0.65",
)
LION = margin_claim(
    "lion-margin",
    "Lion takes attention to the largest margin in l_inf",
    Lp(np.inf),
    Frobenius(),
    three(_LION, steps=_LONG),
    assuming("W", "Lion"),
    optimizer=_LION,
    statement="Lion maximizes the margin in l_inf",
    note="with steps of 0.002, its usual b1 = 0.9 and b2 = 0.99, and 100,000 steps; with steps of "
    "0.005 some data sets stay at 0.8",
)


@once
def _missing(case: Case, seed: int, exponent: float) -> Measurement:
    optimizer = f"{case.optimizer or _LARGE},learning_rate_exponent={exponent}"
    decayed = case.replace(optimizer=optimizer)
    return missing_margin(last_matrices(decayed, seed), case, Lp(np.inf))


DECAYING_STEPS = CLAIMS.claim(
    "decaying-steps-reach-the-margin",
    "step sizes that decay like t^(-1/2) from 0.3 take sign momentum to its margin",
    statement="decaying step sizes lead to the margin where constant ones do not",
    assuming=assuming("W", "sign momentum"),
    contrast=Comparison(
        "1 - margin of W over the largest one in the l_inf norm, for steps that decay like t^-a",
        _missing,
        lambda case, seed: 0.5,
        "the same for steps that stay as they begin",
        lambda case, seed: 0.0,
        bound=BOUND,
        reason=REASON,
    ),
    data=three(_LARGE, steps=_LONG),
    note="the first step, 0.3, is above the threshold of constant ones; a constant step of the "
    "same sum, 0.0019, is below it and comes as near: a decay is one way to get below. Nothing is "
    "said of other first steps: from 30, more than half of the margin is still missing after "
    "300,000 steps",
    exchange="neighboring exponents lead there as well",
)
