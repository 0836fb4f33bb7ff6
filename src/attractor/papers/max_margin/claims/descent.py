"""Where gradient descent leads: from any start, from a cone, and wherever it ends."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from attractor.files.case import Case
from attractor.margin import (
    AttractingCone,
    Solution,
    attracting_cone,
    check_local_optimality,
    locally_optimal_selections,
    solve,
    tie_classes,
)
from attractor.margin.selection import Selection
from attractor.margin.selections.alternatives import problem_against_outsiders
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import (
    EQUAL_OTHER_SCORES,
    EQUAL_SCORES_OR_ALL_SUPPORT,
    FEASIBLE,
    GRADIENT_DESCENT,
    LOCALLY_OPTIMAL,
    ONE_ROW,
    ONE_TOKEN_A_ROW,
    OPTIMUM_FEASIBLE,
    SCORES_DIFFER,
    SEVERAL_ROWS,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.max_margin.data import (
    one_sequence,
    random_prompt_data,
    three_scores_apart,
    three_sequences,
    trapped_sequence,
)
from attractor.papers.measurements.attended import attended, choosing
from attractor.papers.measurements.directions import (
    CONVERGED,
    CONVERGED_BECAUSE,
    distance_from,
    distances,
    from_anywhere,
    second_half,
    steps_to_converge,
    until_converged,
)
from attractor.papers.measurements.near_misses import drop_largest_multiplier
from attractor.papers.transformers_as_svms.random_data import enclosed_token, tied_scores
from attractor.results.paper import MAX_MARGIN
from attractor.training import Trajectory


def contrast_with_one_token_fewer(
    quantity: str,
    distance: Callable[[Case, int, np.ndarray], Measurement],
    wrong_quantity: str = "largest 1 - cos of it with the solution for one support token fewer",
    *,
    solution: Callable[[Case], Solution] = lambda case: case.solution(selection=case.optimal),
    bound: float = CONVERGED,
    reason: str = CONVERGED_BECAUSE,
) -> Comparison[Case, np.ndarray]:
    """The distance of training or of a path from a solution, and from the near miss of it.

    Args:
        quantity: What the distance from the solution is, in words.
        distance: Measures the distance from a direction.
        wrong_quantity: What the distance from the near miss is.
        solution: The solution of a case; default: that of its best tokens.
        bound: The tolerance, of both.
        reason: Why this tolerance.
    """
    return Comparison(
        quantity,
        distance,
        lambda case, seed: solution(case).W,
        wrong_quantity,
        lambda case, seed: drop_largest_multiplier(solution(case)),
        bound=bound,
        reason=reason,
    )


CLAIMS = Claims(MAX_MARGIN, Case)

CONTRAST_FROM_ANY_START = contrast_with_one_token_fewer(
    "largest 1 - cos of the second half of the way with the max-margin direction",
    lambda case, seed, direction: from_anywhere(
        case, seed, lambda run: distance_from(run, direction)
    ),
)


def _random_sequence(seed: int) -> Case:
    """Five tokens in R^4; all but the first have the same score."""
    random = np.random.default_rng(seed)
    keys = random.standard_normal((1, 5, 4))
    return Case.from_scores(keys, [[1.0, 0, 0, 0, 0]], about=f"random sequence, seed {seed}")


def small_random_sequences(seed: int, count: int = 60) -> list[Case]:
    """Two sequences of two tokens in the plane, the longest of length 3, trained from afar."""
    random = np.random.default_rng([seed, 3])
    found = []
    for number in range(count):
        keys, start = random.standard_normal((2, 2, 2)), random.standard_normal(2)
        keys *= 3 / np.linalg.norm(keys, axis=-1).max()
        found.append(
            Case.from_scores(
                keys,
                [[1.0, 0.0], [1.0, 0.0]],
                initial=8 * start / np.linalg.norm(start),
                about=f"two random sequences, number {number} of seed {seed}",
            )
        )
    return found


SINGLE_SEQUENCE_CONVERGENCE = CLAIMS.claim(
    "single-sequence-convergence",
    "one sequence, equal other scores: any start leads to the max-margin direction",
    statement="global convergence of gradient descent for a single sequence",
    assuming=(
        trains("p"),
        GRADIENT_DESCENT,
        ONE_ROW,
        UNIQUE_OPTIMUM.broken_by(lambda: tied_scores("p")),
        OPTIMUM_FEASIBLE.broken_by(lambda: enclosed_token("p")),
        EQUAL_OTHER_SCORES,
    ),
    contrast=CONTRAST_FROM_ANY_START,
    data=lambda seed: [
        one_sequence(equal_scores=True),
        *(_random_sequence(number) for number in range(seed, seed + 5)),
    ],
    note="trained with the normalized steps of the figures; with constant steps the direction "
    "is approached like 1 / log t, see gradient-descent-direction",
)

GLOBAL_CONVERGENCE = CLAIMS.claim(
    "global-convergence",
    "several sequences without stationary points: any start leads to the best tokens",
    statement="global convergence of gradient descent, read for several sequences",
    assuming=(
        trains("p"),
        GRADIENT_DESCENT,
        SEVERAL_ROWS,
        UNIQUE_OPTIMUM.broken_by(
            lambda: Case.from_scores(
                [[[1.0, 0], [0, 0]], [[-2, 3], [0, 0]]], [[1.0, 1.0], [1.0, 0.0]]
            )
        ),
        OPTIMUM_FEASIBLE.broken_by(
            lambda: Case.from_scores(
                [[[1.0, 0], [0, 0]], [[-1, 0], [0, 0]]], [[1.0, 0.0], [1.0, 0.0]]
            )
        ),
        EQUAL_SCORES_OR_ALL_SUPPORT.broken_by(three_scores_apart),
    ),
    contrast=CONTRAST_FROM_ANY_START,
    data=lambda seed: [
        three_sequences().replace(initial=np.zeros(2)),
        trapped_sequence((0.0, 0.0)),
        trapped_sequence((5.0, 0.0)),
        trapped_sequence((0.0, -5.0)),
    ],
    holding=lambda: three_sequences().replace(initial=np.zeros(2)),
    search=small_random_sequences,
    note="fails: that no finite point is stationary does not keep a sequence from staying at a "
    "wrong token for ever, as its gradient may vanish faster than that of the others",
)


_EDGES = 4


def _starts(cone: AttractingCone, seed: int) -> np.ndarray:
    """One matrix on the axis of the cone and some on its edge, all as short as it allows."""
    axis = cone.solution.W / np.linalg.norm(cone.solution.W)
    turned = np.random.default_rng([seed, 13]).standard_normal((_EDGES, *axis.shape))
    turned -= (turned * axis).sum((-1, -2), keepdims=True) * axis
    lengths = np.linalg.norm(turned, axis=(-1, -2), keepdims=True)
    turned = np.divide(turned, lengths, out=np.zeros_like(turned), where=lengths > 0)
    cosine = 1 - float(cone.opening) * (1 - 1e-9)
    edge = cosine * axis + np.sqrt(1 - cosine**2) * turned
    return float(cone.radius) * np.concatenate([axis[None], edge])


def _distance_from_cone(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    cone = attracting_cone(case.tokens, case.head, case.selection, case.solution())
    starts = _starts(cone, seed)
    if case.initial is not None:
        given = np.asarray(case.initial, dtype=float).reshape(1, *starts.shape[1:])
        starts = given[cone.contains(given)]
    if not len(starts):
        return Measurement(np.nan, checked=0, details={"the start": "lies outside the cone"})
    by_name = starts[None, ..., 0] if case.parameterization == "p" else starts[None]
    details = {
        "opening of the cone": float(cone.opening),
        "radius of the cone": float(cone.radius),
        "rows without support tokens": int(cone.uncovered.sum()),
    }

    def distance(run: Trajectory) -> Measurement:
        reached = attended(case, run.W()[0])
        kept = int((reached.mask == case.selection.mask).all((-1, -2, -3)).sum())
        return distance_from(run, direction, **details, **{"starts that keep the selection": kept})

    steps = steps_to_converge(case, float(cone.radius) * np.sqrt(2 * float(cone.opening)))
    return until_converged(case, seed, distance, steps=steps, initial=by_name, seeds=len(starts))


def every_locally_optimal(case: Case) -> list[Case]:
    """A case for each locally optimal selection of small data."""
    census = locally_optimal_selections(case.tokens, case.head)
    return [
        case.replace(
            chosen=census.selections[int(number)],
            about=f"{case.about}, tokens {census.selections[int(number)].index.tolist()}",
        )
        for number in np.flatnonzero(census.locally_optimal)
    ]


def second_token() -> Case:
    """One sequence whose second token is locally optimal and whose first is better."""
    return choosing(one_sequence(equal_scores=False), [1], "second token")


CONTRAST_FROM_A_CONE = contrast_with_one_token_fewer(
    "largest 1 - cos of the second half of the way with the direction of the selection",
    _distance_from_cone,
    solution=lambda case: case.solution(),
    reason=f"{CONVERGED_BECAUSE}; the start, in the cone already, is not in the second half",
)
LOCAL_CONVERGENCE = CLAIMS.claim(
    "local-convergence",
    "from a cone around a locally optimal direction, descent converges to that direction",
    statement="local convergence of gradient descent",
    assuming=(trains("p", "W"), GRADIENT_DESCENT, ONE_TOKEN_A_ROW, FEASIBLE, LOCALLY_OPTIMAL),
    contrast=CONTRAST_FROM_A_CONE,
    data=lambda seed: [
        second_token(),
        three_sequences(),
        *(
            each
            for number in range(seed, seed + 3)
            for each in every_locally_optimal(random_prompt_data(number, 3, 4, 8))
        ),
    ],
    note="the cone is derived and narrow; true basins are far larger",
)


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


def _distance_of_end(
    case: Case, seed: int, direction: Callable[[Solution], np.ndarray]
) -> Measurement:
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
        _distance_of_end,
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
