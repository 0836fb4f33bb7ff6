"""Wherever training keeps a locally optimal selection, it takes the direction of that selection."""

from __future__ import annotations

import numpy as np

from attractor.margin import Solution, check_local_optimality, solve_several, tie_classes
from attractor.papers.case import Case
from attractor.papers.claim import Claim, Conclusion, Measurement
from attractor.papers.hypotheses import trains
from attractor.papers.max_margin.data import (
    one_sequence,
    random_prompt_data,
    three_sequences,
    trapped_sequence,
)
from attractor.papers.measurements.directions import (
    ARRIVED,
    ARRIVED_BECAUSE,
    cosines,
    from_anywhere,
    second_half,
)
from attractor.papers.measurements.near_misses import without_heaviest
from attractor.papers.paper import MAX_MARGIN
from attractor.selection import Selection
from attractor.training import Trajectory


def _solution(case: Case, mask: np.ndarray) -> Solution | None:
    """The solution for the tie classes of a selection; None where it is not locally optimal."""
    selection = Selection(mask, np.zeros(mask.shape[:-1], dtype=bool))

    def compute() -> Solution | None:
        classes = tie_classes(case.tokens, case.head, selection)
        found = solve_several(case.tokens, classes)
        if not np.isfinite(found.value) or found.uniqueness != "unique":
            return None
        local = check_local_optimality(
            case.tokens, case.head, selection, found.solution, ties="class"
        )
        return found.solution if local.holds else None

    return case.once(("of tie classes", mask.tobytes()), compute)


def _distance(case: Case, seed: int, *, wrong: bool = False) -> Measurement:
    def distance(run: Trajectory) -> Measurement:
        scores = np.where(case.tokens.mask, case.tokens.scores(run.W()[0]), -np.inf)
        reached = scores.argmax(-1)[..., None] == np.arange(case.tokens.length)
        distances = []
        for way, mask in zip(second_half(run)[0], reached, strict=True):
            solution = _solution(case, mask)
            if solution is not None:
                direction = without_heaviest(solution) if wrong else solution.W
                distances.append(float(1 - cosines(way, direction)))
        details = {
            "starts": len(reached),
            "at other than locally optimal selections": len(reached) - len(distances),
            "selections": len({mask.tobytes() for mask in reached}),
            "at the best tokens": int((reached == case.optimal.mask).all((-1, -2, -3)).sum()),
        }
        return Measurement(max(distances, default=np.nan), len(distances), details)

    return from_anywhere(case, seed, distance, lengths=(0.1, 1.0, 5.0))


def random_equal_scores(seed: int, n: int = 3, T: int = 5, d: int = 15) -> Case:
    """Random keys; the best token of each row first, and the others with one score in common."""
    random = np.random.default_rng([seed, 19])
    keys = random.standard_normal((n, T, d)) / np.sqrt(d)
    best, other = random.uniform(0.5, 1.5, n), random.uniform(-1.0, 0.0, n)
    scores = np.where(np.arange(T) == 0, best[:, None], other[:, None])
    return Case.from_scores(keys, scores, about=f"random keys, equal scores, seed {seed}")


SELECTED_DIRECTION = Claim(
    name="max-margin/selected-direction",
    paper=MAX_MARGIN,
    statement="direction of the tokens that training selects",
    summary="wherever training ends, its direction is the margin solution of the tokens selected",
    assumptions=(trains("p", "W"),),
    conclusion=Conclusion(
        "largest 1 - cos of the second half of the way with that of the selection reached",
        _distance,
        bound=ARRIVED,
        reason=ARRIVED_BECAUSE,
    ),
    control=Conclusion(
        "largest 1 - cos of it with the solution for one support token fewer",
        lambda case, seed: _distance(case, seed, wrong=True),
        bound=ARRIVED,
        reason="as for the selection reached",
    ),
    data=lambda seed: [
        three_sequences(),
        one_sequence(equal_scores=False),
        trapped_sequence((5.0, 0.0)),
        *(random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 3)),
        *(random_equal_scores(number) for number in range(seed, seed + 5)),
    ],
    broken={"parameterization": lambda: three_sequences().replace(parameterization="KQ")},
    note="of a selection that is locally optimal, tokens of equal score taken as one class, which "
    "is derived: the published definition excludes ties; nothing is claimed of other selections",
)
