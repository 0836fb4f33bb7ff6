"""Attention to the best tokens is the infimum of the loss, and no parameters reach it."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import (
    OPTIMUM_FEASIBLE,
    SCORES_DIFFER,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.max_margin.data import (
    one_sequence,
    random_prompt_data,
    three_sequences,
    two_scores,
)
from attractor.papers.measurements.gradients import along, random_matrices
from attractor.papers.measurements.losses import log_excess, loss_of_keeping, losses
from attractor.papers.measurements.near_misses import turned_past
from attractor.papers.measurements.selections import runner_up
from attractor.papers.paper import MAX_MARGIN
from attractor.selection import Selection

CLAIMS = Claims(MAX_MARGIN, Case)

_DECIDED = 1e-9
"""Relative excess above which it is that of the losses themselves, and not of its formula."""
_FAR = (1000.0, 2000.0)


def _not_above(case: Case, seed: int, kept: Selection) -> Measurement:
    """How many of many matrices have no larger loss than keeping some tokens."""
    matrices = random_matrices(case, seed)
    solution = case.solution(selection=case.optimal)
    if np.isfinite(solution.value):
        matrices = np.concatenate([matrices, along(solution.W, (1.0, 3.0, 10.0, 100.0, 1000.0))])
    least = loss_of_keeping(case, kept)
    excess, exact = losses(case, matrices) - least, log_excess(case, matrices, kept)
    above = np.where(np.abs(excess) > _DECIDED * least, excess > 0, exact > -np.inf)
    details = {
        "least excess": float(excess.min()),
        "told by its logarithm": float(np.nanmin(exact)),
    }
    return Measurement(float((~above).sum()), len(matrices), details)


def _not_above_best(case: Case, seed: int) -> Measurement:
    return _not_above(case, seed, case.optimal)


def _not_above_runner_up(case: Case, seed: int) -> Measurement:
    other = runner_up(case)
    assert other is not None  # as the scores of some row differ
    return _not_above(case, seed, other)


def _decay(case: Case, direction: np.ndarray) -> Measurement:
    logs = log_excess(case, along(direction, _FAR), case.optimal)
    rate = float(np.diff(logs)[0]) / (_FAR[1] - _FAR[0])
    return Measurement(abs(rate + 1), 1, {"rate": rate, "log of the excess": logs.tolist()})


def _decay_along_solution(case: Case, seed: int) -> Measurement:
    return _decay(case, case.solution(selection=case.optimal).W)


def _decay_past_the_margin(case: Case, seed: int) -> Measurement:
    solution = case.solution(selection=case.optimal)
    turned = turned_past(solution)
    return _decay(case, turned * float(solution.value) / np.linalg.norm(turned))


OPTIMAL_TOKENS_MINIMIZE_LOSS = CLAIMS.claim(
    "optimal-tokens-minimize-loss",
    "no parameters reach the loss of keeping the best tokens, and none lies below",
    statement="optimal tokens minimize the training loss",
    assuming=(trains("p", "W"), SCORES_DIFFER),
    contrast=Contrast(
        "number of parameters whose loss is not above that of the best tokens",
        _not_above_best,
        "number whose loss is not above that of one second best token among the best",
        _not_above_runner_up,
        bound=0.0,
        reason="not one is allowed",
    ),
    data=lambda seed: [
        three_sequences(),
        one_sequence(equal_scores=False),
        two_scores(5.0),
        *(random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 3)),
    ],
)

LEAST_LOSS_AT_INFINITY = CLAIMS.claim(
    "least-loss-at-infinity",
    "along the max-margin direction the loss falls to that of the best tokens like exp(-R)",
    statement="optimal tokens minimize the training loss",
    assuming=(trains("p", "W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE),
    contrast=Contrast(
        "distance from -1 of the slope of log(L(R p) - L_best) in R, p the margin solution",
        _decay_along_solution,
        "the same along a direction just past a support token's margin",
        _decay_past_the_margin,
        bound=0.01,
        reason="from R = 1,000 to 2,000, m tokens just off the margin change it by log(m) / 1000",
    ),
    data=lambda seed: [three_sequences(), one_sequence(equal_scores=False), two_scores(5.0)],
)
