"""Wherever training keeps a locally optimal selection, it takes the direction of that selection."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from attractor.files.case import Case
from attractor.margin import Solution, check_local_optimality, solve, tie_classes
from attractor.margin.selection import Selection
from attractor.margin.selections.alternatives import problem_against_outsiders
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import GRADIENT_DESCENT, SCORES_DIFFER, trains
from attractor.papers.max_margin.data import (
    one_sequence,
    random_prompt_data,
    three_sequences,
    trapped_sequence,
)
from attractor.papers.measurements.attended import attended
from attractor.papers.measurements.directions import (
    CONVERGED,
    CONVERGED_BECAUSE,
    distances,
    from_anywhere,
    second_half,
)
from attractor.papers.measurements.near_misses import drop_largest_multiplier
from attractor.results.paper import MAX_MARGIN
from attractor.training import Trajectory

CLAIMS = Claims(MAX_MARGIN, Case)


def _solution(case: Case, mask: np.ndarray) -> Solution | None:
    """The solution by which selected tokens beat all but those of the same score.

    None where the selection is not locally optimal, or that solution prefers another token of the
    same score.
    """
    selection = Selection(mask, np.zeros(mask.shape[:-1], dtype=bool))

    def compute() -> Solution | None:
        classes = tie_classes(case.tokens, case.head, selection)
        found = solve(problem_against_outsiders(case.tokens, selection, classes))
        if not np.isfinite(found.value) or found.value == 0:
            return None
        scores = np.where(classes.mask, case.tokens.scores(found.W), -np.inf)
        on_top = (scores.argmax(-1)[..., None] == np.arange(scores.shape[-1])) == mask
        local = check_local_optimality(case.tokens, case.head, selection, found, ties="class")
        return found if on_top.all() and local.holds else None

    return case.once(("of tie classes", mask.tobytes()), compute)


def _distance(case: Case, seed: int, direction: Callable[[Solution], np.ndarray]) -> Measurement:
    def distance(run: Trajectory) -> Measurement:
        reached = attended(case, run.W()[0]).mask
        found = []
        for way, mask in zip(second_half(run)[0], reached, strict=True):
            solution = _solution(case, mask)
            if solution is not None:
                found.append(float(distances(way, direction(solution))))
        details = {
            "starts": len(reached),
            "at other than locally optimal selections": len(reached) - len(found),
            "selections": len({mask.tobytes() for mask in reached}),
            "at the best tokens": int((reached == case.optimal.mask).all((-1, -2, -3)).sum()),
        }
        return Measurement(max(found, default=np.nan), len(found), details)

    return from_anywhere(case, seed, distance, lengths=(0.1, 1.0, 5.0))


def random_equal_scores(seed: int, n: int = 3, T: int = 5, d: int = 15) -> Case:
    """Random keys; the best token of each row first, and the others with one score in common."""
    random = np.random.default_rng([seed, 19])
    keys = random.standard_normal((n, T, d)) / np.sqrt(d)
    best, other = random.uniform(0.5, 1.5, n), random.uniform(-1.0, 0.0, n)
    scores = np.where(np.arange(T) == 0, best[:, None], other[:, None])
    return Case.from_scores(keys, scores, about=f"random keys, equal scores, seed {seed}")


SELECTED_DIRECTION = CLAIMS.claim(
    "selected-direction",
    "wherever training ends, its direction is the margin solution of the tokens selected",
    statement="direction of the tokens that training selects",
    assuming=(trains("p", "W"), GRADIENT_DESCENT, SCORES_DIFFER),
    contrast=Comparison(
        "largest 1 - cos of the second half of the way with that of the selection reached",
        _distance,
        lambda *_: operator.attrgetter("W"),
        "largest 1 - cos of it with the solution for one support token fewer",
        lambda *_: drop_largest_multiplier,
        bound=CONVERGED,
        reason=CONVERGED_BECAUSE,
    ),
    data=lambda seed: [
        three_sequences(),
        one_sequence(equal_scores=False),
        trapped_sequence((5.0, 0.0)),
        *(random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 3)),
        *(random_equal_scores(number) for number in range(seed, seed + 5)),
    ],
    note="of a selection that is locally optimal, tokens of equal score taken as one class, which "
    "is derived: the published definition excludes ties; nothing is claimed of other selections",
)
