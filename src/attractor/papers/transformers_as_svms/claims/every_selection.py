"""Data on which no selection but the best one attracts training."""

from __future__ import annotations

import math

import numpy as np

from attractor.files.case import Case
from attractor.margin import (
    MarginProblem,
    SelectionCensus,
    enumerate_selections,
    locally_optimal_selections,
    solve,
)
from attractor.papers.assumption import Assumption, Check
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, trains
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_MOST = 5000
"""Selections beyond which they are not all tried."""
_NARROW = 2
_SIZES = ((3, 4, 100), (2, 4, 60), (3, 3, 60), (2, 3, 20))


def _every_selection(case: Case) -> Check:
    tokens = case.tokens
    count = math.prod(int(choices) for choices in tokens.mask.sum(-1).ravel())
    if count > _MOST:
        return Check(False, f"there are {count:,} selections, and up to {_MOST:,} are tried")
    return case.once("support of every selection", lambda: _supports(tokens))


def _supports(tokens: Tokens) -> Check:
    """Whether all tokens stand at the margin of every selection's solution."""
    selections = enumerate_selections(tokens)
    count = len(selections.mask)
    alike = Tokens(
        *(
            np.broadcast_to(array, (count, *array.shape))
            for array in (tokens.keys, tokens.queries, np.ones(tokens.mask.shape[:-1]), tokens.mask)
        )
    )
    solution = solve(MarginProblem.from_selection(alike, selections))
    others = tokens.mask & ~selections.mask
    missing = (others & ~solution.support_tokens).sum((-1, -2, -3))
    missing = np.where(np.isfinite(solution.value), missing, others.sum((-1, -2, -3)))
    full = int((missing == 0).sum())
    return Check(full == count, f"of {count} selections all tokens support {full}")


EVERY_SELECTION_SUPPORTED = Assumption[Case](
    "all tokens support every selection",
    "Whatever is selected, all other tokens stand at the margin of its solution.",
    _every_selection,
    lambda: random_unit_tokens(0, (3, 4, 6)),
)


def _others(case: Case, dimension: int | None = None) -> Measurement:
    """Locally optimal selections besides the best one, perhaps of the first coordinates alone."""
    tokens = case.tokens
    if dimension is not None:
        keys, queries = tokens.keys[..., :dimension], tokens.queries[..., :dimension]
        tokens = Tokens(keys, queries, tokens.labels, tokens.mask, tokens.values)
    census: SelectionCensus = locally_optimal_selections(tokens, case.head)
    is_best = (census.selections.mask == case.optimal.mask).all((-1, -2, -3))
    found = int((census.locally_optimal & ~is_best).sum())
    details = {"selections": len(census), "feasible": int(census.feasible.sum())}
    return Measurement(found, len(census) - 1, details)


ONLY_BEST_ATTRACTS = CLAIMS.claim(
    "only-the-best-attracts",
    "if all tokens support every selection, none but the best is locally optimal",
    statement="global convergence of gradient descent, its condition on every selection",
    assuming=(trains("W"), UNIQUE_OPTIMUM, EVERY_SELECTION_SUPPORTED),
    contrast=Contrast(
        "locally optimal selections besides the best one",
        lambda case, seed: _others(case),
        "the same of the first two coordinates of all tokens and queries",
        lambda case, seed: _others(case, _NARROW),
        bound=0,
        reason="a count over all selections",
    ),
    data=lambda seed: [
        random_unit_tokens(number, size)
        for size in _SIZES
        for number in range(2 * seed, 2 * seed + 2)
    ],
    note="in the Frobenius norm; wide random data meet the condition",
)
