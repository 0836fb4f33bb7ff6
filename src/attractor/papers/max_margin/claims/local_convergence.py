"""Gradient descent stays with a locally optimal selection, from a cone around its direction."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.margin import AttractingCone, attracting_cone, locally_optimal_selections
from attractor.papers.claim import Claims, Measurement
from attractor.papers.hypotheses import (
    FEASIBLE,
    GRADIENT_DESCENT,
    LOCALLY_OPTIMAL,
    ONE_TOKEN_A_ROW,
    trains,
)
from attractor.papers.max_margin.claims._one_token_fewer import contrast_with_one_token_fewer
from attractor.papers.max_margin.data import one_sequence, random_prompt_data, three_sequences
from attractor.papers.measurements.attended import attended, choosing
from attractor.papers.measurements.directions import (
    CONVERGED_BECAUSE,
    distance_from,
    steps_to_converge,
    until_converged,
)
from attractor.results.paper import MAX_MARGIN
from attractor.training import Trajectory

CLAIMS = Claims(MAX_MARGIN, Case)

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


def _distance(case: Case, seed: int, direction: np.ndarray) -> Measurement:
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


CONTRAST = contrast_with_one_token_fewer(
    "largest 1 - cos of the second half of the way with the direction of the selection",
    _distance,
    solution=lambda case: case.solution(),
    reason=f"{CONVERGED_BECAUSE}; the start, in the cone already, is not in the second half",
)
LOCAL_CONVERGENCE = CLAIMS.claim(
    "local-convergence",
    "from a cone around a locally optimal direction, descent converges to that direction",
    statement="local convergence of gradient descent",
    assuming=(trains("p", "W"), GRADIENT_DESCENT, ONE_TOKEN_A_ROW, FEASIBLE, LOCALLY_OPTIMAL),
    contrast=CONTRAST,
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
