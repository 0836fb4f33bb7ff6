"""The hypotheses of the general theorem on in-context training, as checks that run on tasks."""

from __future__ import annotations

import math

import numpy as np

from attractor.papers.large_prompt.in_context_data import (
    curved_loss,
    heavy_tokens,
    heavy_weights,
    long_queries,
    small,
    without_sigma,
)
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.prompts.files.in_context import InContextCase
from attractor.prompts.in_context.assumption import (
    decay_finding,
    moments_finding,
    query_finding,
    tilted_finding,
)
from attractor.prompts.in_context.losses import Finding, State, check_loss
from attractor.prompts.in_context.training import RiskTransfer, transfer_of_samples

_APART, _LONGER = 16, 4
_SETTLED = 0.05
_TIMES = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0)


@once
def transfer(case: InContextCase) -> RiskTransfer:
    """Training on prompts of each length of a case, and on infinite ones."""
    times = [time for time in _TIMES if time < case.time / 2] + [case.time / 2, case.time]
    train, held_out = case.samples()
    return transfer_of_samples(train, held_out, case.loss, case.lengths, times, about=case.about)


def _check(finding: Finding) -> Check:
    settled = "" if finding.state is not State.NOT_SETTLED else "not settled: "
    return Check(finding.state is State.MET, settled + finding.found)


def _long_enough(case: InContextCase) -> Check:
    lengths, longest = case.lengths, case.prompts.shape[1]
    exact = case.token_covariance is not None
    infinite = "known exactly" if exact else f"{longest:,} tokens in the place of infinitely many"
    met = lengths[-1] >= _APART * lengths[0] and (exact or longest >= _LONGER * lengths[-1])
    return Check(met, f"prompts of {', '.join(f'{each:,}' for each in lengths)} tokens; {infinite}")


COMPARED_LENGTHS = Assumption[InContextCase](
    "lengths to compare",
    f"Prompts of lengths that differ by a factor of {_APART} or more are given, and infinite ones "
    f"exactly, or tokens in their place that are {_LONGER} times as many.",
    _long_enough,
    lambda: small().replace(lengths=(64,)),
)
SMOOTH_LOSS = Assumption[InContextCase](
    "a 1-smooth loss",
    "The loss is 1-smooth in the prediction, and its derivative vanishes at the origin.",
    lambda case: _check(check_loss(case.loss, case.labels)),
    curved_loss,
)
SHORT_QUERIES = Assumption[InContextCase](
    "1-sub-Gaussian queries",
    "Queries are 1-sub-Gaussian; what is checked is that no variance is above 1.",
    lambda case: _check(query_finding(case.queries)),
    long_queries,
)
SIGMA_GIVEN = Assumption[InContextCase](
    "sub-Gaussian parameters",
    "Sub-Gaussian parameters of tokens given the task are in the file, 8,192 or more.",
    lambda case: Check(
        case.sigma is not None and len(case.sigma) >= 8192,
        "none" if case.sigma is None else f"{len(case.sigma):,} of them",
    ),
    without_sigma,
)


def _sigma(case: InContextCase) -> Check:
    if case.sigma is None:
        return Check(False, "not settled: no sub-Gaussian parameters are given")
    found = moments_finding(case.sigma), decay_finding(case.sigma)
    states = [each.state for each in found]
    met = all(state is State.MET for state in states)
    return Check(met, f"moments {states[0].value}, decay {states[1].value}: {found[1].found}")


LIGHT_SIGMA = Assumption[InContextCase](
    "light sub-Gaussian parameters",
    "Moments of the sub-Gaussian parameter sigma are finite, and ln(L)^4 E[L^(-c / sigma^2)] tends "
    "to 0 for every c > 0, as far as the draws of it show.",
    _sigma,
    heavy_weights,
)


def _tilted(case: InContextCase) -> Check:
    gaussian = case.token_covariance is not None
    return _check(tilted_finding(case.prompts, gaussian=gaussian))


TILTED_MOMENTS = Assumption[InContextCase](
    "bounded tilted moments",
    "Moments of tokens tilted by scores are bounded by a polynomial in sigma.",
    _tilted,
    heavy_tokens,
)


def _settled(case: InContextCase) -> Check:
    data = transfer(case).data.sel(length=math.inf)
    risk = data["training_risk"].values
    fell, last = float(risk[0] - risk[-1]), float(risk[-2] - risk[-1])
    norm = np.linalg.norm(data["score_matrix"].values[-1]) ** 2
    radius = math.sqrt(norm + np.linalg.norm(data["value_matrix"].values[-1]) ** 2)
    share = last / fell if fell > 0 else math.inf
    found = (
        f"{share:.2g} of the fall in the second half of {case.time:g}, parameters of {radius:.3g}"
    )
    return Check(0 <= share <= _SETTLED, found)


SETTLED = Assumption[InContextCase](
    "training that settles",
    "Gradient flow on infinite prompts stays bounded: the risk falls by a twentieth of its whole "
    "fall at most in the second half of the time.",
    _settled,
    lambda: small().replace(time=0.5),
)
SHORT_TIME = Assumption[InContextCase](
    "time to compare paths",
    "Gradient flow runs for a time of 4 or more, up to 3 of which paths are compared.",
    lambda case: Check(case.time >= 4, f"it runs for {case.time:g}"),
    lambda: small().replace(time=0.5),
)
IN_CONTEXT_HYPOTHESES = (
    COMPARED_LENGTHS,
    SMOOTH_LOSS,
    SHORT_QUERIES,
    SIGMA_GIVEN,
    LIGHT_SIGMA,
    TILTED_MOMENTS,
    SETTLED,
    SHORT_TIME,
)
"""The hypotheses reported of a user's in-context tasks."""
