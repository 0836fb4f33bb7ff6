"""Claims that an optimizer takes W to the largest margin in a norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.files import Case
from attractor.geometry import Geometry
from attractor.papers import Assumption, Claim, Claims, Measurement
from attractor.papers.data import random_unit_tokens
from attractor.papers.given import SCORES_DIFFER, trained_by, trains
from attractor.papers.measures import attended, margin_ratios, trained, where_it_ends
from attractor_further.folklore import PAPER
from attractor_further.norms import beside_another_norm

CLAIMS = Claims(PAPER, Case)
STEPS = 10_000
SIZE = (6, 8, 10)
BOUND = 0.05
REASON = (
    "what is left where a run arrives, like one over the sum of its step sizes; norms differ by .15"
)
_RECORDS = 15
"""In each of the last three times in which the number of steps triples."""
_SATURATED = 10.0
"""Smallest score margin from which on attention is on its tokens alone."""
_GROWING = 1.05
"""Growth in the last tripling of steps from which on a run is not at rest."""


def three(
    optimizer: str, parameterization: str = "W", **other: Any
) -> Callable[[int], Sequence[Case]]:
    """Three random data sets, with how to train on them, as ``trained_tokens`` takes it."""

    def data(seed: int) -> Sequence[Case]:
        return [
            trained_tokens(number, optimizer, parameterization, **other)
            for number in range(seed, seed + 3)
        ]

    return data


def trained_tokens(
    seed: int,
    optimizer: str,
    parameterization: str = "W",
    *,
    steps: int = STEPS,
    size: tuple[int, int, int] = SIZE,
) -> Case:
    """Random unit tokens, with how to train on them."""
    case = random_unit_tokens(seed, size, parameterization, optimizer=optimizer, steps=steps)
    return case.replace(about=f"{case.about}, {optimizer}")


def assuming(parameterization: str, *optimizers: str) -> tuple[Assumption[Case], ...]:
    """The hypotheses: what is trained, by which optimizers, and that some token is better."""
    other = "greedy coordinate descent:learning_rate=0.1"
    equal = [[[1.0, 0], [0, 1]]]
    return (
        trains(parameterization),
        trained_by(*optimizers).broken_by(
            lambda: random_unit_tokens(0, parameterization=parameterization, optimizer=other)
        ),
        SCORES_DIFFER.broken_by(
            lambda: Case.from_scores(
                equal, [[1.0, 1.0]], queries=[[1.0, 0]], parameterization=parameterization
            )
        ),
    )


def last_matrices(
    case: Case, seed: int, optimizer: str | None = None
) -> Float[np.ndarray, "record d e"]:
    """W at records from a 27th of the steps on, spread evenly over the logarithm, to the last.

    Args:
        case: The data.
        seed: Names the start.
        optimizer: The optimizer, where the case names none.
    """
    steps = STEPS if case.steps is None else case.steps
    record = np.geomspace(max(steps / 27, 1), max(steps, 1), 3 * _RECORDS).round().astype(int)
    record = np.minimum(record, steps)
    run = trained(
        case, seed, steps=steps, optimizer=optimizer, record=np.unique(record), weights="all"
    )
    W = run.data["W"].transpose("instance", "seed", run.axis, ...)
    return W.sel({run.axis: record}).to_numpy()[0, 0]


def missing_margin(
    matrices: Float[np.ndarray, "record d e"], case: Case, norm: Geometry
) -> Measurement:
    """One less the margin of the last W over the largest, of the tokens that it attends to most.

    ``where_it_ends`` gives its interval. As long as scores are small W only grows along the first
    gradient: a run has begun where attention is saturated, or W grows no longer, as under decay.
    """
    solution = case.solution(norm, attended(case, matrices[-1]))
    if not 0 < float(solution.value) < np.inf:
        return Measurement(np.nan, 0, {"margin problem": str(solution.status)})
    sizes = np.linalg.norm(matrices, axis=(-2, -1))
    saturated = solution.problem.margins(matrices[-1]).min() >= _SATURATED
    grows = sizes[-1] > _GROWING * sizes[2 * len(sizes) // 3 - 1]
    details = {"spectral norm of W": float(np.linalg.norm(matrices[-1], 2))}
    missing = 1 - margin_ratios(matrices, solution)
    return where_it_ends(missing, 1, details, begun=bool(saturated or not grows))


def margin_claim(
    name: str,
    words: str,
    geometry: Geometry,
    wrong: Geometry,
    data: Callable[[int], Sequence[Case]],
    assumptions: Sequence[Assumption[Case]],
    *,
    optimizer: str,
    statement: str,
    note: str,
    holding: Callable[[], Case] | None = None,
) -> Claim[Case]:
    """A claim on the margin that training ends at.

    Args:
        name: Its name.
        words: What is believed, in a line.
        geometry: The norm.
        wrong: Another one, for the control.
        data: Data sets that name their optimizers.
        assumptions: Its hypotheses.
        optimizer: The optimizer of data that name none.
        statement: The subject.
        note: What came of it.
        holding: Data where it holds, if not on the first.
    """

    def measure(case: Case, seed: int, norm: Geometry) -> Measurement:
        return missing_margin(last_matrices(case, seed, optimizer), case, norm)

    return CLAIMS.claim(
        name,
        words,
        statement=statement,
        assuming=assumptions,
        contrast=beside_another_norm(measure, geometry, wrong, bound=BOUND, reason=REASON),
        data=data,
        holding=holding,
        note=note,
    )
