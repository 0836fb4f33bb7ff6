"""A first gradient that separates the best tokens leads descent on W to their solution."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import (
    GOOD_FIRST_GRADIENT,
    OPTIMUM_FEASIBLE,
    UNIQUE_OPTIMUM,
    first_step_ratio,
    trains,
)
from attractor.papers.measurements.directions import (
    ARRIVED,
    ARRIVED_BECAUSE,
    arriving,
    distance_from,
    steps_to_converge,
)
from attractor.papers.measurements.gradients import descent_directions
from attractor.papers.measurements.near_misses import without_heaviest
from attractor.papers.measurements.separating_starts import faint_length
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.random_data import (
    random_unit_tokens,
)

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)


def _distance(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    """From zero, and from where a first step leads that is long enough."""
    case = case if case.initial is None else case.replace(initial=None)
    zero = np.zeros((1, case.tokens.key_dimension, case.tokens.query_dimension))
    step = case.once("first step", lambda: descent_directions(case, zero)[0])
    length = faint_length(case) / first_step_ratio(case)
    starts = np.stack([np.zeros_like(step), length * step])
    return arriving(
        case,
        seed,
        lambda run: distance_from(run, direction, first_step=length),
        steps=steps_to_converge(case, length),
        initial=starts[None],
        seeds=len(starts),
    )


def _distance_from_solution(case: Case, seed: int) -> Measurement:
    return _distance(case, seed, case.solution(selection=case.optimal).W)


def _distance_from_one_token_fewer(case: Case, seed: int) -> Measurement:
    return _distance(case, seed, without_heaviest(case.solution(selection=case.optimal)))


GOOD_FIRST_GRADIENT_CONVERGENCE = CLAIMS.claim(
    "good-first-gradient",
    "if the first step from zero separates the best tokens, W goes to their solution",
    statement="global convergence of gradient descent under a good first gradient",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, GOOD_FIRST_GRADIENT),
    contrast=Contrast(
        "largest 1 - cos of the second half of the way with the Frobenius solution",
        _distance_from_solution,
        "largest 1 - cos of it with the solution for one support token fewer",
        _distance_from_one_token_fewer,
        bound=ARRIVED,
        reason=ARRIVED_BECAUSE,
    ),
    data=lambda seed: [random_unit_tokens(number) for number in range(seed, seed + 12)],
    holding=lambda: random_unit_tokens(18),
    note="from zero, and from the end of a first step so long that other tokens have next to no "
    "weight, as the statement has it; a quarter of random data meet the assumption",
)
