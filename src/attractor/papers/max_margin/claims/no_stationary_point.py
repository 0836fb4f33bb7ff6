"""No finite stationary point."""

from __future__ import annotations

import numpy as np

from attractor.papers.case import Case
from attractor.papers.claim import Claim, Conclusion, Measurement
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    FEASIBLE,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.max_margin.data import one_sequence, three_sequences, two_scores
from attractor.papers.measurements.directions import cosines
from attractor.papers.measurements.gradients import descent_directions, random_matrices
from attractor.papers.paper import MAX_MARGIN


def _least_cosine(case: Case, seed: int) -> Measurement:
    matrices = random_matrices(case, seed)
    directions = descent_directions(case, matrices)
    found = cosines(directions, case.solution(selection=case.optimal).W)
    return Measurement(float(found.min()), len(found), {"starts with ascent": int((found <= 0).sum())})


def _least_cosine_of_another(case: Case, seed: int) -> Measurement:
    """The same for the direction of the tokens that score worst."""
    worst = np.where(case.tokens.mask, case.scores, np.inf).argmin(-1)
    against = case.tokens.adjoint(
        (np.arange(case.tokens.length) == worst[..., None]).astype(float) - case.optimal.mask
    )
    matrices = random_matrices(case, seed)
    found = cosines(descent_directions(case, matrices), against)
    return Measurement(float(found.min()), len(found))


def _no_finite_norm(keys: list) -> Case:
    return Case.from_scores(keys, [[1.0, 0.0, 0.0]])


NO_STATIONARY_POINT = Claim(
    name="max-margin/no-stationary-point",
    paper=MAX_MARGIN,
    statement="absence of finite stationary points",
    summary="descent always gains along the max-margin direction: no finite stationary point",
    assumptions=(trains("p"), UNIQUE_OPTIMUM, FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    conclusion=Conclusion(
        "least cosine of the descent direction with the max-margin direction",
        _least_cosine,
        bound=0.0,
        sense=">=",
        reason="every term of the product is positive; the sign alone is claimed",
    ),
    control=Conclusion(
        "least cosine with the difference to the worst tokens",
        _least_cosine_of_another,
        bound=0.0,
        sense=">=",
        reason="the same, for a direction that descent does not gain along",
    ),
    data=lambda seed: [one_sequence(equal_scores=True), three_sequences(), two_scores(5.0)],
    broken={
        "parameterization": lambda: one_sequence(equal_scores=True).replace(parameterization="W"),
        "unique optimum": lambda: Case.from_scores([[[1.0, 0], [0, 1.0], [0, 0]]], [[1.0, 1, 0]]),
        "feasible": lambda: _no_finite_norm([[[0.5, 0], [1.0, 0], [0.0, 0]]]),
        "equal scores or all support": lambda: one_sequence(equal_scores=False),
    },
)
