"""Data on which no selection but the best one attracts training."""

from __future__ import annotations

from attractor.files.case import Case
from attractor.margin import SelectionCensus, locally_optimal_selections
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, trains
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.max_margin.claims.optimal_tokens_minimize_loss import one_second_best
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.support.errors import InvalidInputError

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_MOST = 5000
"""Selections beyond which they are not all tried."""
_SIZES = ((3, 4, 100), (2, 4, 60), (3, 3, 60), (2, 3, 20))


@once
def _census(case: Case) -> SelectionCensus:
    """Which selections are locally optimal, and by which support tokens."""
    return locally_optimal_selections(case.tokens, case.head, most=_MOST)


def _every_selection(case: Case) -> Check:
    try:
        census = _census(case)
    except InvalidInputError as error:
        return Check(False, error.problem)
    others = case.tokens.mask & ~census.selections.mask
    full = (census.support_tokens | ~others).all((-1, -2, -3)) & census.feasible
    found = f"of {len(census)} selections all tokens support {int(full.sum())}"
    return Check(bool(full.all()), found)


EVERY_SELECTION_SUPPORTED = Assumption[Case](
    "all tokens support every selection",
    "Whatever is selected, all other tokens stand at the margin of its solution.",
    _every_selection,
    lambda: random_unit_tokens(0, (3, 4, 6)),
)


def _others(case: Case, seed: int, selection: Selection) -> Measurement:
    """Locally optimal selections besides one."""
    census = _census(case)
    is_other = (census.selections.mask != selection.mask).any((-1, -2, -3))
    found = int((census.locally_optimal & is_other).sum())
    details = {"selections": len(census), "feasible": int(census.feasible.sum())}
    return Measurement(found, len(census) - 1, details)


ONLY_BEST_ATTRACTS = CLAIMS.claim(
    "only-the-best-attracts",
    "if all tokens support every selection, none but the best is locally optimal",
    statement="global convergence of gradient descent, its condition on every selection",
    assuming=(trains("W"), UNIQUE_OPTIMUM, EVERY_SELECTION_SUPPORTED),
    contrast=Comparison(
        "locally optimal selections besides the best one",
        _others,
        lambda case, seed: case.optimal,
        "locally optimal selections besides that of one second best token",
        one_second_best,
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
