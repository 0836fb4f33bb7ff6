"""The minimum of the loss over balls of an entrywise norm."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, feasible, trains
from attractor.papers.measurements.bregman import divergences
from attractor.papers.measurements.paths import path
from attractor.papers.mirror_descent.claims._examples import another_norm, with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import imbalance, steps_known
from attractor.results.paper import MIRROR_DESCENT as PAPER

CLAIMS = Claims(PAPER, Case, "mirror-descent")


def _at_end(case: Case, seed: int, solution: np.ndarray) -> Measurement:
    own = steps_known(case).geometry
    best = case.replace(chosen=None)
    unit = imbalance(best) * float(case.solution(own, case.optimal).value)
    run = path(case, seed, own, unit=unit)
    along = divergences(run.data["W"].values[0], solution[None], own)[0]
    details = {
        "p": own.p,
        "radii": run.steps.tolist(),
        "divergence": along.tolist(),
        "optimality": float(run.data["optimality"].max()),
    }
    return Measurement(float(along[-1]), 1, details)


def _small(seed: int) -> Case:
    return random_case(seed, 2, 3, 2)


REGULARIZATION_PATH = CLAIMS.claim(
    "regularization-path",
    "the best W in the l_p ball of radius R tends to the max-margin direction in l_p",
    statement="regularization path in the l_p norm",
    assuming=(trains("W"), MIRROR_DESCENT, UNIQUE_OPTIMUM, feasible(of="optimum")),
    contrast=Comparison(
        "directional divergence from the solution in the norm of the ball, at the largest radius",
        _at_end,
        lambda case, seed: case.solution(steps_known(case).geometry, case.optimal).W,
        "directional divergence from the solution in another norm",
        lambda case, seed: case.solution(another_norm(case), case.optimal).W,
        bound=1e-6,
        reason="D falls like R^-2; at 10,000 norms of the solution the bound lets its constant "
        "be 100",
    ),
    data=lambda seed: [
        _small(3 * seed),
        with_exponent(_small(3 * seed + 1), 1.5),
        with_exponent(_small(3 * seed + 2), 3.0),
    ],
    note="the best tokens, whatever the data select; p is that of the data's optimizer",
)
