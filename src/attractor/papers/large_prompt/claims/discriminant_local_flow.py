"""The local rate of gradient flow that classifies two classes: exponential, with a gate."""

from __future__ import annotations

import numpy as np

from attractor.files.head import HeadCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import MIXTURE_CLAIMS
from attractor.papers.large_prompt.claims.discriminant_saddles import NOT_OPPOSITE
from attractor.papers.large_prompt.discriminant import (
    Classes,
    bayes_risk,
    classes,
)
from attractor.papers.large_prompt.discriminant_head import (
    bayes_matrices,
    head_flow,
    head_hessian,
    head_risk,
)
from attractor.papers.large_prompt.mixture_data import CLASSES, two_classes
from attractor.papers.once import once_a_case

_STARTS = 2
_OFF = 0.1
"""Distance from Bayes parameters at which a flow starts."""
_LEAST_CURVATURE = 1e-6
"""Least curvature that differences resolve and flows are followed for."""
_DECAYS = 10.0
_RECORDS = 30
_LEAST_EXCESS = 1e-12
"""Excess risk below which rounding hides it."""


@once_a_case
def _least_rate(case: HeadCase, seed: int, *, gate: bool) -> Measurement:
    """The least rate at which the excess risk falls, over twice the least curvature.

    Along gradient flow ``-d log(R - R*) / dt = ||grad R||^2 / (R - R*)``, at least twice the least
    positive eigenvalue of the Hessian near minimizers whose other directions are minimizers too.
    """
    of = classes(case)
    draws = np.random.default_rng([seed, 47])
    found = [_rate_near(of, draws, gate=gate) for _ in range(_STARTS)]
    rates, curvatures = np.transpose([one for one in found if one] or np.empty((0, 2)))
    details = {"relative rates": rates.tolist(), "least curvatures": curvatures.tolist()}
    return Measurement(min(rates, default=np.nan), len(rates), details)


def _rate_near(
    of: Classes, draws: np.random.Generator, *, gate: bool
) -> tuple[float, float] | None:
    """The relative rate of one flow and the least curvature, or None where too flat to be seen."""
    center = bayes_matrices(of, draws, gate=gate)
    if center is None:
        return None
    # The risk does not change along s where r = 0, nor along b with r as well where s = 0.
    curved = len(of.positive) + 1 + gate
    curvature = float(np.linalg.eigvalsh(head_hessian(of, center))[-curved])
    if curvature < _LEAST_CURVATURE:
        return None
    step = draws.standard_normal(len(center))
    start = center + _OFF * step / np.linalg.norm(step)
    times = np.linspace(0, _DECAYS / curvature, _RECORDS)
    path = [head_risk(of, flat) for flat in head_flow(of, start, times, tolerance=1e-6)]
    excess = np.array([risk.value for risk in path]) - bayes_risk(of)
    # -d log(R - R*) / dt is the squared gradient over the excess: no slope needs to be fitted.
    squares = np.array([np.sum(risk.gradient**2) for risk in path])
    seen = excess > _LEAST_EXCESS
    if not seen.any():
        return None
    return float(np.min(squares[seen] / excess[seen])) / (2 * curvature), curvature


DISCRIMINANT_LOCAL_CONVERGENCE = MIXTURE_CLAIMS.claim(
    "discriminant-local-convergence",
    "near Bayes parameters with r = 0 and s != 0 gradient flow converges exponentially",
    statement="local exponential convergence of gradient flow of the logistic risk",
    assuming=(*CLASSES, NOT_OPPOSITE),
    contrast=Contrast(
        "least rate of log(R - R*) along flows from near r = 0, over twice the least positive "
        "eigenvalue of the Hessian there",
        lambda case, seed: _least_rate(case, seed, gate=True),
        "the same from near s = 0 with r != 0, where the risk grows as s to the fourth or slower",
        lambda case, seed: _least_rate(case, seed, gate=False),
        bound=0.5,
        reason="a start 0.1 away has curvatures of its own; without exponential convergence 0",
        sense=">=",
    ),
    data=lambda seed: [
        two_classes(),
        two_classes(wide=True, probability=0.3),
        two_classes((1.0, 0.5), (-0.5, 1.0), 0.5, wide=True),
    ],
    note="the flow is that of the matrices of a head; the least rate is that of the Hessian, which "
    "vanishes only along minimizers where r = 0, and along more than those where s = 0",
)
