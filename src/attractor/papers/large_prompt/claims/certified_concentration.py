"""A certified margin proves that attention is concentrated, at every scale of the weights."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import FEASIBLE, ONE_TOKEN_A_ROW
from attractor.papers.max_margin.data import random_prompt_data, three_sequences, two_scores
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.prompts.concentration import certified_concentration
from attractor.results.paper import CRITICAL_TEMPERATURE

_SCALES = (0.5, 2.0, 8.0, 32.0)
"""Norms of the weights, in units of the solution's."""
_ROUNDING = 1e-9


def _odds_beyond(case: Case, seed: int, margin: float) -> Measurement:
    """The largest log odds of other tokens, less ``log(T - 1)`` less scale times margin.

    Odds are those of the scores of the solution, computed from tokens and not from constraints.
    """
    solution = case.solution()
    mask, selected = case.tokens.mask, case.selection.mask
    scores = np.asarray(case.tokens.scores(solution.W))
    rows = mask.sum(-1) > 1
    top = np.where(selected, scores, 0).sum(-1)[rows]
    others = np.where(mask & ~selected, scores, -np.inf)[rows]
    found = []
    for scale in _SCALES:
        odds = np.logaddexp.reduce(scale * (others - top[:, None]), axis=-1)
        found.append(odds - np.log(mask.sum(-1)[rows] - 1) + scale * margin)
    concentration = certified_concentration(solution)
    details = {
        "largest rate": float(concentration.rows.rate.max()),
        "norm that gives 99 % in every row": float(concentration.norm_for(0.99).max()),
    }
    return Measurement(float(np.max(found)), int(rows.sum()), details)


def _proven(case: Case, seed: int) -> float:
    """The least gap that the certificate of the solution proves."""
    gaps = certified_concentration(case.solution()).gaps
    return float(gaps[gaps > 0].min())


CERTIFIED_CONCENTRATION = Claims(CRITICAL_TEMPERATURE, Case, "large-prompt").claim(
    "certified-concentration",
    "a certified margin m proves odds of at most (T - 1) exp(-c m) beside each selected token",
    statement="concentration of rows whose gaps are at least a margin",
    assuming=(ONE_TOKEN_A_ROW, FEASIBLE),
    contrast=Comparison(
        "largest log odds of the tokens not selected, under .5 to 32 times the solution, beyond "
        "log(T - 1) less scale times proven margin",
        _odds_beyond,
        _proven,
        "the same with a margin larger by a tenth",
        lambda case, seed: 1.1 * _proven(case, seed),
        bound=_ROUNDING,
        reason="rounding of scores: a row of support tokens alone has just these odds",
    ),
    data=lambda seed: [
        three_sequences(),
        two_scores(2.0),
        random_unit_tokens(seed, (3, 4, 12)),
        random_prompt_data(seed, 3, 4, 8),
    ],
    note="derived: the gaps of a row of T tokens are at least the margin, so that its rate is at "
    "most log(T) over it",
)
