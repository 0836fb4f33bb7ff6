"""Gradient descent on W from starts, or a first step, that separate the best tokens."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Measurement
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    GOOD_FIRST_GRADIENT,
    OPTIMUM_FEASIBLE,
    UNIQUE_OPTIMUM,
    first_step_ratio,
    trains,
)
from attractor.papers.max_margin.claims._one_token_fewer import contrast_with_one_token_fewer
from attractor.papers.measurements.directions import (
    distance_from,
    steps_to_converge,
    until_converged,
)
from attractor.papers.measurements.gradients import descent_directions
from attractor.papers.measurements.separating_starts import (
    faint_length,
    separates,
    separating_starts,
)
from attractor.papers.transformers_as_svms.claims.no_stationary_point import all_tokens_support
from attractor.papers.transformers_as_svms.random_data import equal_other_scores, random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_QUANTITY = "largest 1 - cos of the second half of the way with the Frobenius solution"
_RATIO = 0.5
_EDGES = 4


def _distance_after_first_step(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    """From zero, and from where a first step leads that is long enough."""
    case = case if case.initial is None else case.replace(initial=None)
    zero = np.zeros((1, case.tokens.key_dimension, case.tokens.query_dimension))
    step = case.once("first step", lambda: descent_directions(case, zero)[0])
    length = faint_length(case) / first_step_ratio(case)
    starts = np.stack([np.zeros_like(step), length * step])
    return _distance(case, seed, starts, direction, length, "first_step")


def _distance_from_afar(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    """From the axis and the edge of the cone of matrices with half the best margin."""
    starts = separating_starts(case, seed, _RATIO, _EDGES)
    if case.initial is not None:
        given = np.asarray(case.initial, dtype=float).reshape(1, *starts.shape[1:])
        starts = given[separates(case, given, _RATIO)]
    if not len(starts):
        return Measurement(np.nan, 0, {"the start": "lies outside the cone"})
    length = float(np.linalg.norm(starts, axis=(-1, -2)).max())
    return _distance(case, seed, starts, direction, length, "length")


def _distance(
    case: Case, seed: int, starts: np.ndarray, direction: np.ndarray, length: float, name: str
) -> Measurement:
    """The distance of training from starts up to a length, which the details report by a name."""
    return until_converged(
        case,
        seed,
        lambda run: distance_from(run, direction, **{name: length}),
        steps=steps_to_converge(case, length),
        initial=starts[None],
        seeds=len(starts),
    )


GOOD_FIRST_GRADIENT_CONVERGENCE = CLAIMS.claim(
    "good-first-gradient",
    "if the first step from zero separates the best tokens, W goes to their solution",
    statement="global convergence of gradient descent under a good first gradient",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, GOOD_FIRST_GRADIENT),
    contrast=contrast_with_one_token_fewer(_QUANTITY, _distance_after_first_step),
    data=lambda seed: [random_unit_tokens(number) for number in range(seed, seed + 12)],
    holding=lambda: random_unit_tokens(18),
    note="from zero, and from the end of a first step so long that other tokens have next to no "
    "weight, as the statement has it; a quarter of random data meet the assumption",
)

LARGE_START = CLAIMS.claim(
    "large-start",
    "from far out with half the best margin, descent on W goes to the Frobenius solution",
    statement="global convergence of gradient descent from large starts around the solution",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    contrast=contrast_with_one_token_fewer(_QUANTITY, _distance_from_afar),
    data=lambda seed: [
        make(number)
        for number in range(seed, seed + 3)
        for make in (equal_other_scores, all_tokens_support)
    ],
    note="what is large and how wide the cone is are derived, not quoted; such starts need no "
    "assumption on scores, as the best tokens are far ahead already",
)
