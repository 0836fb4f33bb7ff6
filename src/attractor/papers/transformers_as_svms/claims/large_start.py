"""Gradient descent on W from far out in a cone of matrices that separate the best tokens."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    OPTIMUM_FEASIBLE,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.measurements.directions import (
    ARRIVED,
    ARRIVED_BECAUSE,
    arriving,
    distance_from,
    steps_to_converge,
)
from attractor.papers.measurements.near_misses import without_heaviest
from attractor.papers.measurements.separating_starts import separates, separating_starts
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.claims.no_stationary_point import all_tokens_support
from attractor.papers.transformers_as_svms.random_data import (
    equal_other_scores,
)

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_RATIO = 0.5
_EDGES = 4


def _distance(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    starts = separating_starts(case, seed, _RATIO, _EDGES)
    if case.initial is not None:
        given = np.asarray(case.initial, dtype=float).reshape(1, *starts.shape[1:])
        starts = given[separates(case, given, _RATIO)]
    if not len(starts):
        return Measurement(np.nan, 0, {"the start": "lies outside the cone"})
    length = float(np.linalg.norm(starts, axis=(-1, -2)).max())
    return arriving(
        case,
        seed,
        lambda run: distance_from(run, direction, length=length),
        steps=steps_to_converge(case, length),
        initial=starts[None],
        seeds=len(starts),
    )


def _distance_from_solution(case: Case, seed: int) -> Measurement:
    return _distance(case, seed, case.solution(selection=case.optimal).W)


def _distance_from_one_token_fewer(case: Case, seed: int) -> Measurement:
    return _distance(case, seed, without_heaviest(case.solution(selection=case.optimal)))


LARGE_START = CLAIMS.claim(
    "large-start",
    "from far out with half the best margin, descent on W goes to the Frobenius solution",
    statement="global convergence of gradient descent from large starts around the solution",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    contrast=Contrast(
        "largest 1 - cos of the second half of the way with the Frobenius solution",
        _distance_from_solution,
        "largest 1 - cos of it with the solution for one support token fewer",
        _distance_from_one_token_fewer,
        bound=ARRIVED,
        reason=ARRIVED_BECAUSE,
    ),
    data=lambda seed: [
        make(number)
        for number in range(seed, seed + 3)
        for make in (equal_other_scores, all_tokens_support)
    ],
    note="what is large and how wide the cone is are derived, not quoted; such starts need no "
    "assumption on scores, as the best tokens are far ahead already",
)
