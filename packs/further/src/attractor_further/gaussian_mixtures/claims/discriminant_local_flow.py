"""The local rate of gradient flow that classifies two classes: exponential, with a gate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attractor.papers import Comparison, Measurement
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.claims.discriminant_saddles import NOT_OPPOSITE, Parameters
from attractor_further.gaussian_mixtures.discriminant import Classes, bayes_risk, classes
from attractor_further.gaussian_mixtures.discriminant_head import (
    bayes_matrices,
    head_flow,
    head_hessian,
    head_risk,
)
from attractor_further.gaussian_mixtures.mixture_data import CLASSES, two_classes

_STARTS = 2
_OFF = 0.1
"""Distance from Bayes parameters at which a flow starts."""
_NEAR = 0.2
"""Distance from them within which it ends."""
_ROUNDING = 1e-9
"""Curvature that differences leave where there is none."""
_LEAST_CURVATURE = 1e-6
"""Least curvature that flows are followed for."""
_DECAYS = 10.0
_RECORDS = 30
_LEAST_EXCESS = 1e-11
"""Excess risk below which rounding hides it."""


def _centers(case: HeadCase, seed: int, *, gate: bool) -> list[Parameters]:
    """Random matrices of heads that are Bayes, see ``bayes_matrices``."""
    of, draws = classes(case), np.random.default_rng([seed, 47])
    drawn = [bayes_matrices(of, draws, gate=gate) for _ in range(_STARTS)]
    return [center for center in drawn if center is not None]


def _off_curvature(case: HeadCase, seed: int, centers: Sequence[Parameters]) -> Measurement:
    """The largest relative distance of rates of flows from twice the curvature where they end.

    Along gradient flow ``-d log(R - R*) / dt = ||grad R||^2 / (R - R*)``, which tends to twice the
    least positive eigenvalue of the Hessian if the risk is quadratic across the minimizers. Where
    it grows like a fourth power it tends to two thirds of that, and both to zero.
    """
    of, draws = classes(case), np.random.default_rng([seed, 48])
    ends = [end for center in centers if (end := _rate_near(of, center, draws)) is not None]
    if not ends:
        return Measurement(np.nan, 0)
    rates, curvatures = np.transpose(ends)
    details = {"relative rates": rates.tolist(), "least curvatures": curvatures.tolist()}
    return Measurement(float(np.abs(rates - 1).max()), len(rates), details)


def _rate_near(
    of: Classes, center: Parameters, draws: np.random.Generator
) -> tuple[float, float] | None:
    """The relative rate of a flow and the curvature at its end, or None where it is too slow.

    A flow that does not end near the center has an infinite rate.
    """
    curvatures, directions = np.linalg.eigh(head_hessian(of, center))
    slowest = curvatures[curvatures > _ROUNDING].min(initial=np.inf)
    if not _LEAST_CURVATURE <= slowest < np.inf:
        return None
    # As far along every direction as along any other, so that the slowest is seen in the end.
    step = directions @ draws.choice([-1.0, 1.0], len(center))
    start = center + _OFF * step / np.sqrt(len(center))
    times = np.linspace(0, _DECAYS / slowest, _RECORDS)
    path = head_flow(of, start, times, tolerance=1e-8)
    excess = np.array([head_risk(of, point).value for point in path]) - bayes_risk(of)
    seen = np.flatnonzero(excess > _LEAST_EXCESS)
    if not len(seen):
        return None
    end = path[seen[-1]]
    # The risk does not change along the minimizers with r = 0: w, b and r are fixed there, s not.
    curvature = float(np.linalg.eigvalsh(head_hessian(of, end))[-len(of.positive) - 2])
    rate = float(np.sum(head_risk(of, end).gradient ** 2) / excess[seen[-1]])
    near = np.linalg.norm(end - center) <= _NEAR
    return rate / (2 * curvature) if near else np.inf, curvature


DISCRIMINANT_LOCAL_CONVERGENCE = CLAIMS.claim(
    "discriminant-local-convergence",
    "near Bayes parameters with r = 0 and s != 0 gradient flow converges exponentially",
    statement="local exponential convergence of gradient flow of the logistic risk",
    assuming=(*CLASSES, NOT_OPPOSITE),
    contrast=Comparison(
        "largest relative distance of the rate of log(R - R*), late in flows from near r = 0, from "
        "twice the least positive eigenvalue of the Hessian there",
        _off_curvature,
        lambda case, seed: _centers(case, seed, gate=True),
        "the same from near s = 0 with r != 0, where the risk grows as s to the fourth or slower",
        lambda case, seed: _centers(case, seed, gate=False),
        bound=0.05,
        reason="faster directions are left where curvatures are close; without exponential "
        "convergence it is a third and more",
    ),
    data=lambda seed: [
        two_classes(),
        two_classes(wide=True, probability=0.3),
        two_classes((1.0, 0.5), (-0.5, 1.0), 0.5, wide=True),
    ],
    note="the flow is that of the matrices of a head; the least rate is that of the Hessian, which "
    "vanishes only along minimizers where r = 0, and along more than those where s = 0",
)
