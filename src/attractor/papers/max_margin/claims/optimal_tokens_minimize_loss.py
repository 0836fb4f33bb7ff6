"""Attention to the best tokens is the infimum of the loss, and no parameters reach it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.analysis.losses.excess_loss import log_excess_loss
from attractor.attention import get_loss
from attractor.files.case import Case
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import OPTIMUM_FEASIBLE, SCORES_DIFFER, UNIQUE_OPTIMUM, trains
from attractor.papers.max_margin.data import (
    one_sequence,
    random_prompt_data,
    three_sequences,
    two_scores,
)
from attractor.papers.measurements.attended import scores_at
from attractor.papers.measurements.gradients import along, random_matrices
from attractor.papers.measurements.near_misses import turned_past
from attractor.results.paper import MAX_MARGIN

CLAIMS = Claims(MAX_MARGIN, Case)

_DECIDED = 1e-9
"""Relative excess above which it is that of the losses themselves, and not of its formula."""
_FAR = (1000.0, 2000.0)


def _not_above(case: Case, seed: int, kept: Selection) -> Measurement:
    """Counts random matrices whose loss is not above that of keeping certain tokens."""
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


def one_second_best(case: Case, seed: int) -> Selection:
    """The best tokens but in one row, which keeps its second best: a wrong selection near by."""
    other = runner_up(case)
    assert other is not None  # as the scores of some row differ
    return other


def _decay(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    logs = log_excess(case, along(direction, _FAR), case.optimal)
    rate = float(np.diff(logs)[0]) / (_FAR[1] - _FAR[0])
    return Measurement(abs(rate + 1), 1, {"rate": rate, "log of the excess": logs.tolist()})


def _past_the_margin(case: Case, seed: int) -> np.ndarray:
    solution = case.solution(selection=case.optimal)
    turned = turned_past(solution)
    return turned * float(solution.value) / np.linalg.norm(turned)


OPTIMAL_TOKENS_MINIMIZE_LOSS = CLAIMS.claim(
    "optimal-tokens-minimize-loss",
    "no parameters reach the loss of keeping the best tokens, and none lies below",
    statement="optimal tokens minimize the training loss",
    assuming=(trains("p", "W"), SCORES_DIFFER),
    contrast=Comparison(
        "number of parameters whose loss is not above that of the best tokens",
        _not_above,
        lambda case, seed: case.optimal,
        "number whose loss is not above that of one second best token among the best",
        one_second_best,
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
    contrast=Comparison(
        "distance from -1 of the slope of log(L(R p) - L_best) in R, p the margin solution",
        _decay,
        lambda case, seed: case.solution(selection=case.optimal).W,
        "the same along a direction just past a support token's margin",
        _past_the_margin,
        bound=0.01,
        reason="from R = 1,000 to 2,000, m tokens just off the margin change it by log(m) / 1000",
    ),
    data=lambda seed: [three_sequences(), one_sequence(equal_scores=False), two_scores(5.0)],
)


def log_excess(
    case: Case, matrices: Float[np.ndarray, "batch d e"], kept: Selection
) -> Float[np.ndarray, "batch"]:
    """Logarithm of the logistic loss above that of keeping certain tokens, at any magnitude.

    NaN where the loss is below it.
    """
    head = np.asarray(case.head.weight)
    lengths = np.linalg.norm(case.tokens.values, axis=-1) * np.linalg.norm(head)
    scores = scores_at(case, matrices)
    return log_excess_loss(get_loss("logistic"), scores, case.scores, lengths, kept.mask)


def losses(case: Case, matrices: Float[np.ndarray, "batch d e"]) -> Float[np.ndarray, "batch"]:
    """The logistic loss ``mean_ik log(1 + exp(-sum_t softmax_t gamma_t))``, straight from that."""
    gamma = np.where(case.tokens.mask, case.scores, 0.0)
    margins = (softmax(scores_at(case, matrices), axis=-1) * gamma).sum(-1)
    return np.logaddexp(0, -margins).mean((-1, -2))


def loss_of_keeping(case: Case, kept: Selection) -> float:
    """The logistic loss with all attention on the best of the kept tokens of every row."""
    gamma = np.where(kept.mask, case.scores, -np.inf).max(-1)
    return float(np.logaddexp(0, -gamma).mean())


def runner_up(case: Case) -> Selection | None:
    """The best tokens but in one row, which keeps its second best: the row where that costs least.

    None where no row has a second score.
    """
    best = case.optimal.mask
    others = np.where(case.tokens.mask & ~best, case.scores, -np.inf)
    advantage = np.where(best, case.scores, -np.inf).max(-1) - others.max(-1)
    if not np.isfinite(advantage).any():
        return None
    row = np.unravel_index(int(np.argmin(advantage)), advantage.shape)
    mask = best.copy()
    mask[row] = np.arange(best.shape[-1]) == others[row].argmax()
    return Selection(mask, case.optimal.tied & (mask == best).all(-1))
