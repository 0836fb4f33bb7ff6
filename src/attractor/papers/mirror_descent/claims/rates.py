"""Rates of the norm and of the direction of mirror descent."""

from __future__ import annotations

import numpy as np

from attractor.analysis.rates import Rate, fit_rate
from attractor.errors import TrialStatus
from attractor.files.case import Case
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.mirror_descent.claims._examples import examples, out_of_reach
from attractor.papers.mirror_descent.hypotheses import NEAR_A_SOLUTION
from attractor.papers.mirror_descent.training import divergence_from, own_solution, run, steps_known
from attractor.papers.paper import MIRROR_DESCENT
from attractor.training import Trajectory

CLAIMS = Claims(MIRROR_DESCENT, Case)

_NOTE = (
    "against the logarithm of k, the number of unnormalized steps that normalized ones amount to, "
    "over the last half of about 60 records, evenly spread over the logarithm of the step"
)


def _fitted(
    trajectory: Trajectory, values: np.ndarray, law: str, power: float = 1.0
) -> tuple[float, Rate]:
    """The mean slope over starts; NaN where no run can be fitted."""
    rate = fit_rate(
        trajectory.data["log_time"].values[0] ** power,
        values,
        law=law,
        fraction=0.5,
        abscissa_is_log=True,
        excluded={"terminated": trajectory.data["status"].values[0] != TrialStatus.TRAINED},
    )
    return rate.parts["whole window"].mean, rate


def _growth(case: Case, seed: int, power: float) -> Measurement:
    trajectory = run(case, seed)
    if trajectory is None:
        return out_of_reach(case)
    norms = trajectory.data["norm"].values[0] / float(own_solution(case).value)
    slope, rate = _fitted(trajectory, norms, "logarithm", power)
    details = {"p": steps_known(case).p, "log k": rate.last, "norm": float(norms[:, -1].min())}
    return Measurement(slope, rate.trials, details)


def _excess_of_slope(case: Case, seed: int, factor: float) -> Measurement:
    trajectory = run(case, seed)
    if trajectory is None:
        return out_of_reach(case)
    along = divergence_from(case, trajectory, own_solution(case).W)
    slope, rate = _fitted(trajectory, along, "power of the logarithm")
    p = steps_known(case).p
    proved = min(p - 1, 1.0)
    details = {"p": p, "slope": slope, "proved": -proved, "log k": rate.last}
    return Measurement(slope + factor * proved, rate.trials, details)


NORM_GROWTH = CLAIMS.claim(
    "norm-growth",
    "the norm of W grows at least like the logarithm of the number of steps",
    statement="growth of the norm under mirror descent",
    assuming=NEAR_A_SOLUTION,
    contrast=Contrast(
        "slope of the norm, in norms of the solution, against log k",
        lambda case, seed: _growth(case, seed, 1.0),
        "slope of the norm against (log k)^1.1",
        lambda case, seed: _growth(case, seed, 1.1),
        bound=0.9,
        reason="an order is claimed; its constant tends to 1, and is .94 or more at log k of 50",
        sense=">=",
    ),
    data=examples,
    note=_NOTE,
)

RATE = CLAIMS.claim(
    "rate",
    "the divergence falls at least like (log k)^-(p - 1), for p above 2 like 1 / log k",
    statement="rate of local convergence of mirror descent",
    assuming=NEAR_A_SOLUTION,
    contrast=Contrast(
        "slope of log divergence against log log k, less that of the proved rate",
        lambda case, seed: _excess_of_slope(case, seed, 1.0),
        "the same for four times the exponent",
        lambda case, seed: _excess_of_slope(case, seed, 4.0),
        bound=0.0,
        reason="the proved rate is an upper bound; the rate measured is about its square",
    ),
    data=examples,
    note=f"{_NOTE}; factors of log log k, which the statement has at p = 2 and above, are slower "
    "than any power",
)
