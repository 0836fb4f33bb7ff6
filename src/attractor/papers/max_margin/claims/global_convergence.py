"""Gradient descent to the best tokens, from any start."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims
from attractor.papers.hypotheses import (
    EQUAL_OTHER_SCORES,
    EQUAL_SCORES_OR_ALL_SUPPORT,
    GRADIENT_DESCENT,
    ONE_ROW,
    OPTIMUM_FEASIBLE,
    SEVERAL_ROWS,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.max_margin.claims._one_token_fewer import contrast_with_one_token_fewer
from attractor.papers.max_margin.data import (
    one_sequence,
    three_scores_apart,
    three_sequences,
    trapped_sequence,
)
from attractor.papers.measurements.directions import distance_from, from_anywhere
from attractor.papers.transformers_as_svms.random_data import enclosed_token, tied_scores
from attractor.results.paper import MAX_MARGIN

CLAIMS = Claims(MAX_MARGIN, Case)

CONTRAST = contrast_with_one_token_fewer(
    "largest 1 - cos of the second half of the way with the max-margin direction",
    lambda case, seed, direction: from_anywhere(
        case, seed, lambda run: distance_from(run, direction)
    ),
)


def _random_sequence(seed: int) -> Case:
    """Five tokens in R^4; all but the first have the same score."""
    random = np.random.default_rng(seed)
    keys = random.standard_normal((1, 5, 4))
    return Case.from_scores(keys, [[1.0, 0, 0, 0, 0]], about=f"random sequence, seed {seed}")


def small_random_sequences(seed: int, count: int = 60) -> list[Case]:
    """Two sequences of two tokens in the plane, the longest of length 3, trained from afar."""
    random = np.random.default_rng([seed, 3])
    found = []
    for number in range(count):
        keys, start = random.standard_normal((2, 2, 2)), random.standard_normal(2)
        keys *= 3 / np.linalg.norm(keys, axis=-1).max()
        found.append(
            Case.from_scores(
                keys,
                [[1.0, 0.0], [1.0, 0.0]],
                initial=8 * start / np.linalg.norm(start),
                about=f"two random sequences, number {number} of seed {seed}",
            )
        )
    return found


SINGLE_SEQUENCE_CONVERGENCE = CLAIMS.claim(
    "single-sequence-convergence",
    "one sequence, equal other scores: any start leads to the max-margin direction",
    statement="global convergence of gradient descent for a single sequence",
    assuming=(
        trains("p"),
        GRADIENT_DESCENT,
        ONE_ROW,
        UNIQUE_OPTIMUM.broken_by(lambda: tied_scores("p")),
        OPTIMUM_FEASIBLE.broken_by(lambda: enclosed_token("p")),
        EQUAL_OTHER_SCORES,
    ),
    contrast=CONTRAST,
    data=lambda seed: [
        one_sequence(equal_scores=True),
        *(_random_sequence(number) for number in range(seed, seed + 5)),
    ],
    note="trained with the normalized steps of the figures; with constant steps the direction "
    "is approached like 1 / log t, see gradient-descent-direction",
)

GLOBAL_CONVERGENCE = CLAIMS.claim(
    "global-convergence",
    "several sequences without stationary points: any start leads to the best tokens",
    statement="global convergence of gradient descent, read for several sequences",
    assuming=(
        trains("p"),
        GRADIENT_DESCENT,
        SEVERAL_ROWS,
        UNIQUE_OPTIMUM.broken_by(
            lambda: Case.from_scores(
                [[[1.0, 0], [0, 0]], [[-2, 3], [0, 0]]], [[1.0, 1.0], [1.0, 0.0]]
            )
        ),
        OPTIMUM_FEASIBLE.broken_by(
            lambda: Case.from_scores(
                [[[1.0, 0], [0, 0]], [[-1, 0], [0, 0]]], [[1.0, 0.0], [1.0, 0.0]]
            )
        ),
        EQUAL_SCORES_OR_ALL_SUPPORT.broken_by(three_scores_apart),
    ),
    contrast=CONTRAST,
    data=lambda seed: [
        three_sequences().replace(initial=np.zeros(2)),
        trapped_sequence((0.0, 0.0)),
        trapped_sequence((5.0, 0.0)),
        trapped_sequence((0.0, -5.0)),
    ],
    holding=lambda: three_sequences().replace(initial=np.zeros(2)),
    search=small_random_sequences,
    note="fails: that no finite point is stationary does not keep a sequence from staying at a "
    "wrong token for ever, as its gradient may vanish faster than that of the others",
)
