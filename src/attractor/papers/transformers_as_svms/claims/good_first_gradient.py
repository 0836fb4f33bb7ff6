"""A first gradient that separates the best tokens leads descent on W to their solution."""

from __future__ import annotations

import numpy as np

from attractor.papers.assumption import Assumption, Check
from attractor.papers.case import Case
from attractor.papers.claim import Claim, Conclusion, Measurement
from attractor.papers.hypotheses import OPTIMUM_FEASIBLE, UNIQUE_OPTIMUM, trains
from attractor.papers.measurements.directions import (
    ARRIVED,
    ARRIVED_BECAUSE,
    arriving,
    distance_from,
    far_enough,
)
from attractor.papers.measurements.gradients import descent_directions
from attractor.papers.measurements.margin_ratios import margin_ratios
from attractor.papers.measurements.near_misses import without_heaviest
from attractor.papers.measurements.separating_starts import faint_length
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.random_data import (
    SMALL,
    enclosed_token,
    random_unit_tokens,
    tied_scores,
)


def _first_step(case: Case) -> tuple[np.ndarray, float]:
    """The direction of the first step from zero, and its margin ratio."""
    zero = np.zeros((1, case.tokens.key_dimension, case.tokens.query_dimension))
    step = case.once("first step", lambda: descent_directions(case, zero)[0])
    return step, float(margin_ratios(step, case.solution(selection=case.optimal)))


def _good(case: Case) -> Check:
    ratio = _first_step(case)[1]
    return Check(
        ratio > 0, f"the first step has the smallest margin {ratio:.3g}, in units of the best"
    )


GOOD_FIRST_GRADIENT = Assumption(
    "good first gradient", "The first step from zero puts the best token of every row ahead.", _good
)


def _distance(case: Case, seed: int, direction: np.ndarray) -> Measurement:
    """From zero, and from where a first step leads that is long enough; or from the case's start."""
    step, ratio = _first_step(case)
    length = faint_length(case) / ratio
    starts = np.stack([np.zeros_like(step), length * step])
    return arriving(
        case,
        seed,
        lambda run: distance_from(run, direction, first_step=length),
        steps=far_enough(case, length),
        initial=starts[None],
        seeds=len(starts),
    )


def _distance_from_solution(case: Case, seed: int) -> Measurement:
    return _distance(case, seed, case.solution(selection=case.optimal).W)


def _distance_from_one_token_fewer(case: Case, seed: int) -> Measurement:
    return _distance(case, seed, without_heaviest(case.solution(selection=case.optimal)))
