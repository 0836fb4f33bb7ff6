"""Selections that attract gradient descent on W, and the direction it takes."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.margin import check_local_optimality, enumerate_selections
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import FEASIBLE, LOCALLY_OPTIMAL, ONE_TOKEN_A_ROW, trains
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.claims import local_convergence as prompt
from attractor.papers.measurements.attended import attended, choosing
from attractor.papers.measurements.directions import steps_to_converge, trained
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_RADII = (30.0, 100.0)
"""Lengths of starts on a ray, in norms of its solution."""


def _worse_support(case: Case) -> Check:
    local = check_local_optimality(case.tokens, case.head, case.selection, case.solution())
    worst = float(local.worst_advantage)
    return Check(worst < 0, f"the smallest advantage over a support token is {worst:.3g}")


NOT_LOCALLY_OPTIMAL = Assumption(
    "not locally optimal",
    "Some support token of the selection has a higher score than the selected token.",
    _worse_support,
    lambda: random_unit_tokens(0),
)


def _kept(case: Case, seed: int, selection: Selection) -> Measurement:
    """Number of starts on the ray of a selection's solution that keep the selection."""
    solution = case.solution(selection=selection)
    if not np.isfinite(solution.value):
        return Measurement(np.nan, 0)
    starts = np.multiply.outer(_RADII, solution.W)[None]
    if case.parameterization == "p":
        starts = starts[..., 0]
    moved = case.replace(initial=None)
    steps = steps_to_converge(moved, _RADII[-1] * float(solution.value))
    run = trained(moved, seed, steps=steps, initial=starts, seeds=len(_RADII))
    kept = (attended(case, run.W()[0]).mask == selection.mask).all((-1, -2, -3))
    return Measurement(float(kept.sum()), len(kept), {"kept": kept.tolist(), "steps": steps})


def every_other_selection(case: Case) -> list[Case]:
    """A case for each feasible selection that is not locally optimal, of small data."""
    chosen = enumerate_selections(case.tokens)
    cases = [
        case.replace(chosen=chosen[number], about=f"{case.about}, tokens {chosen[number].index}")
        for number in range(len(chosen.mask))
    ]
    return [one for one in cases if FEASIBLE.check(one).met and _worse_support(one).met]


def _another_first_token() -> Case:
    """The best tokens of small data but in the first sequence, where the last token is selected."""
    case = random_unit_tokens(0)
    index = case.optimal.index.ravel()
    index[0] = case.tokens.length - 1
    return choosing(case, index, f"tokens {index}")


LOCAL_CONVERGENCE = CLAIMS.claim(
    "local-convergence",
    "from a cone around a locally optimal direction, descent on W converges to it",
    statement="local convergence of gradient descent",
    assuming=(trains("W"), ONE_TOKEN_A_ROW, FEASIBLE, LOCALLY_OPTIMAL),
    contrast=prompt.CONTRAST,
    data=lambda seed: [
        each
        for number in range(seed, seed + 3)
        for each in prompt.every_locally_optimal(random_unit_tokens(number))
    ],
    note="the cone is derived and narrow, and begins far out; true basins are larger",
)

ONLY_LOCAL_OPTIMA_ATTRACT = CLAIMS.claim(
    "only-local-optima-attract",
    "a selection that is not locally optimal is left, even from its own solution's ray",
    statement="directions to which gradient descent cannot converge",
    assuming=(trains("W", "p"), ONE_TOKEN_A_ROW, FEASIBLE, NOT_LOCALLY_OPTIMAL),
    contrast=Comparison(
        "starts on the ray of the selection's solution that keep it",
        _kept,
        lambda case, seed: case.selection,
        "starts on the ray of the best tokens' solution that keep those",
        lambda case, seed: case.optimal,
        bound=0,
        reason="a count, of starts at 30 and 100 norms of the solution",
    ),
    data=lambda seed: every_other_selection(random_unit_tokens(seed))[:8],
    holding=_another_first_token,
    note="a support token of higher score pulls attention away at any distance, if slowly",
)
