"""The minimum of the loss over balls of an entrywise norm."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.geometry import Lp
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, feasible, trains
from attractor.papers.measurements.bregman import divergences
from attractor.papers.measurements.paths import path
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import imbalance, steps_known
from attractor.papers.paper import MIRROR_DESCENT as PAPER

CLAIMS = Claims(PAPER, Case, "mirror-descent")

_BOUND = 1e-6
_REASON = "D falls like R^-2; at 10,000 norms of the solution the bound lets its constant be 100"


def _from_own(case: Case, seed: int) -> Measurement:
    return _at_end(case, seed, Lp(steps_known(case).p))


def _from_another(case: Case, seed: int) -> Measurement:
    return _at_end(case, seed, Lp(1.75) if steps_known(case).p == 2 else Lp(2))


def _at_end(case: Case, seed: int, geometry: Lp) -> Measurement:
    own = Lp(steps_known(case).p)
    best = case.replace(chosen=None)
    unit = imbalance(best) * float(case.solution(own, case.optimal).value)
    run = path(case, seed, own, unit=unit)
    solution = case.solution(geometry, case.optimal).W
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


def tied_scores() -> Case:
    """Two best tokens in one row."""
    keys = np.array([[[1.0, 0], [0, 1.0], [-1.0, 0]], [[1.0, 0], [0, 1.0], [-1.0, 0]]])
    return _scored(keys, [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def _scored(keys: np.ndarray, scores: list[list[float]]) -> Case:
    return Case.from_scores(keys, scores, parameterization="W", queries=np.eye(2))


REGULARIZATION_PATH = CLAIMS.claim(
    "regularization-path",
    "the best W in the l_p ball of radius R tends to the max-margin direction in l_p",
    statement="regularization path in the l_p norm",
    assuming=(
        trains("W"),
        MIRROR_DESCENT,
        UNIQUE_OPTIMUM,
        feasible(of="optimum"),
    ),
    contrast=Contrast(
        "directional divergence from the solution in the norm of the ball, at the largest radius",
        _from_own,
        "directional divergence from the solution in another norm",
        _from_another,
        bound=_BOUND,
        reason=_REASON,
    ),
    data=lambda seed: [
        _small(3 * seed),
        with_exponent(_small(3 * seed + 1), 1.5),
        with_exponent(_small(3 * seed + 2), 3.0),
    ],
    note="the best tokens, whatever the data select; p is that of the data's optimizer",
)
