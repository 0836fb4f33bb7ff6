"""No finite stationary point."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.files.case import Case
from attractor.geometry.vectors import cosines
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    OPTIMUM_FEASIBLE,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.max_margin.data import (
    one_sequence,
    three_scores_apart,
    three_sequences,
    two_scores,
)
from attractor.papers.measurements.gradients import along, descent_directions, random_matrices
from attractor.papers.measurements.near_misses import turned_past
from attractor.papers.transformers_as_svms.random_data import enclosed_token, tied_scores
from attractor.results.paper import MAX_MARGIN

CLAIMS = Claims(MAX_MARGIN, Case)


def _gain(case: Case, seed: int, direction: Float[np.ndarray, "d e"]) -> Measurement:
    matrices = np.concatenate([random_matrices(case, seed), along(direction)])
    found = cosines(descent_directions(case, matrices), direction)
    return Measurement(
        float(found.min()), len(found), {"places of ascent": int((found <= 0).sum())}
    )


CONTRAST = Comparison[Case, np.ndarray](
    "least cosine of the descent direction with the max-margin direction",
    _gain,
    lambda case, seed: case.solution(selection=case.optimal).W,
    "least cosine of the descent direction with one just past a support token's margin",
    lambda case, seed: turned_past(case.solution(selection=case.optimal)),
    bound=0.0,
    reason="every term of the product is positive; the sign alone is claimed",
    sense=">=",
)
NO_STATIONARY_POINT = CLAIMS.claim(
    "no-stationary-point",
    "descent always gains along the max-margin direction: no finite stationary point",
    statement="absence of finite stationary points",
    assuming=(
        trains("p"),
        UNIQUE_OPTIMUM.broken_by(lambda: tied_scores("p")),
        OPTIMUM_FEASIBLE.broken_by(lambda: enclosed_token("p")),
        EQUAL_SCORES_OR_ALL_SUPPORT.broken_by(three_scores_apart),
    ),
    contrast=CONTRAST,
    data=lambda seed: [one_sequence(equal_scores=True), three_sequences(), two_scores(5.0)],
    exchange=2.1,
)
