"""The training loss at given parameters, as plain numbers and above that of a selection."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.analysis.excess_loss import log_excess_loss
from attractor.attention import get_loss
from attractor.files.case import Case
from attractor.selection import Selection


def log_excess(
    case: Case, matrices: Float[np.ndarray, "batch d e"], kept: Selection
) -> Float[np.ndarray, "batch"]:
    """Logarithm of the logistic loss above that of keeping certain tokens, at any magnitude.

    NaN where the loss is below it.
    """
    head = np.asarray(case.head.weight)
    lengths = np.linalg.norm(case.tokens.values, axis=-1) * np.linalg.norm(head)
    scores = np.where(case.tokens.mask, case.tokens.scores(matrices), -np.inf)
    return log_excess_loss(get_loss("logistic"), scores, case.scores, lengths, kept.mask)


def losses(case: Case, matrices: Float[np.ndarray, "batch d e"]) -> Float[np.ndarray, "batch"]:
    """The logistic loss ``mean_ik log(1 + exp(-sum_t softmax_t gamma_t))``, straight from that."""
    scores = np.where(case.tokens.mask, case.tokens.scores(matrices), -np.inf)
    gamma = np.where(case.tokens.mask, case.scores, 0.0)
    margins = (softmax(scores, axis=-1) * gamma).sum(-1)
    return np.logaddexp(0, -margins).mean((-1, -2))


def loss_of_keeping(case: Case, kept: Selection) -> float:
    """The logistic loss with all attention on the best of the kept tokens of every row."""
    gamma = np.where(kept.mask, case.scores, -np.inf).max(-1)
    return float(np.logaddexp(0, -gamma).mean())
