"""Gradient descent on W to the best tokens, from any start."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    OPTIMUM_FEASIBLE,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.max_margin.claims import global_convergence as prompt
from attractor.papers.transformers_as_svms.random_data import equal_other_scores, trapped
from attractor.results.paper import TRANSFORMERS_AS_SVMS

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)


def small_random_pairs(seed: int, count: int = 40) -> list[Case]:
    """Two sequences of two tokens in the plane with one query, trained from afar."""
    random = np.random.default_rng([seed, 37])
    found = []
    for number in range(count):
        start = random.standard_normal((2, 2))
        found.append(
            Case.from_scores(
                2 * random.standard_normal((2, 2, 2)),
                [[1.0, 0.0], [1.0, 0.0]],
                queries=[[1.0, 0.0], [1.0, 0.0]],
                parameterization="W",
                initial=8 * start / np.linalg.norm(start),
                about=f"two random sequences of one query, number {number} of seed {seed}",
            )
        )
    return found


GLOBAL_CONVERGENCE = CLAIMS.claim(
    "global-convergence",
    "without stationary points any start of W leads to the solution of the best tokens",
    statement="global convergence of gradient descent, read for any start",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    contrast=prompt.CONTRAST,
    data=lambda seed: [
        trapped(0.0),
        trapped(8.0),
        equal_other_scores(seed, initial=np.zeros((4, 4))),
    ],
    holding=lambda: trapped(0.0),
    search=small_random_pairs,
    note="fails: that no finite matrix is stationary does not keep a sequence from staying at a "
    "wrong token for ever; from W = 0 and from near the solution it holds",
)
