"""Beside its ray, normalized gradient descent settles at a finite offset."""

from __future__ import annotations

import numpy as np

from attractor.analysis.offset import measured_offsets, predicted_offsets
from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import (
    FEASIBLE,
    LOCALLY_OPTIMAL,
    NORMALIZED_STEPS,
    ONE_TOKEN_A_ROW,
    trains,
)
from attractor.papers.ledger.claim import once
from attractor.papers.max_margin.data import random_prompt_data, three_sequences, two_scores
from attractor.papers.measurements.attended import attended
from attractor.papers.measurements.directions import steps_to_converge, trained
from attractor.results.paper import MAX_MARGIN

CLAIMS = Claims(MAX_MARGIN, Case)

_SETTLED = 1e-9
"""Change of an offset in the second half of training up to which it counts as settled."""


@once
def _offsets(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets reached and predicted, at the support tokens.

    Both are empty where other tokens are selected, or the offset has not converged: that takes
    the longer the smaller the least multiplier is.
    """
    predicted = predicted_offsets(case.tokens, case.head, case.solution()).margins
    known = np.isfinite(predicted)
    shortest = steps_to_converge(case, 0.0) if case.steps is None else case.steps
    for steps in (shortest, 8 * shortest) if case.steps is None else (shortest,):
        half, end = _matrices(case, seed, steps)
        if (attended(case, end).mask & ~case.selection.mask).any():
            break
        before, found = (measured_offsets(W, case.solution())[known] for W in (half, end))
        if np.abs(found - before).max(initial=0.0) <= _SETTLED:
            return found, predicted[known]
    return np.zeros(0), np.zeros(0)


def _matrices(case: Case, seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Half-way and at the end of a run from zero."""
    shape = (case.tokens.key_dimension, case.tokens.query_dimension)
    start = np.zeros(shape[0] if case.parameterization == "p" else shape)
    halfway = max(1, steps // 2)
    run = trained(
        case, seed, steps=steps, initial=start, record=sorted({halfway, steps}), weights="all"
    )
    return run.W(halfway)[0, 0], run.W()[0, 0]


def _error(case: Case, seed: int, predicted: np.ndarray) -> Measurement:
    found, _ = _offsets(case, seed)
    details = {"reached": found.tolist(), "predicted": predicted.tolist()}
    return Measurement(
        float(np.abs(found - predicted).max(initial=0.0)), max(len(found) - 1, 0), details
    )


FINITE_OFFSET = CLAIMS.claim(
    "finite-offset",
    "normalized descent runs beside its ray, where loss and score gaps meet multipliers",
    statement="finite offset of normalized gradient descent",
    assuming=(trains("p", "W"), NORMALIZED_STEPS, ONE_TOKEN_A_ROW, FEASIBLE, LOCALLY_OPTIMAL),
    contrast=Comparison(
        "largest error of the margins of what is orthogonal to the solution, at support tokens",
        _error,
        lambda case, seed: _offsets(case, seed)[1],
        "largest such margin, as if all support tokens came to the same",
        lambda case, seed: np.zeros_like(_offsets(case, seed)[1]),
        bound=1e-8,
        reason="ten times the change in the second half up to which an offset counts as settled",
    ),
    data=lambda seed: [
        three_sequences(),
        *(two_scores(score) for score in (2.0, 5.0, 10.0)),
        *(random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 3)),
    ],
    note="derived, not quoted; one support token alone leaves nothing to be measured, "
    "nor does an offset that goes on changing",
)
