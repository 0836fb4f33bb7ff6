"""Selections near the one a statement is about."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.selection import Selection


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
