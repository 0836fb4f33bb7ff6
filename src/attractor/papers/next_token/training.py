"""Two-stage training on a corpus, as long as the statements on it need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.linear import EmbeddedContexts, LinearTrajectory, train_linear
from attractor.corpora.problems import attention_problem, feed_forward_problem
from attractor.corpora.two_stages.two_stage import TwoStageTrajectory, train_two_stages
from attractor.corpora.two_stages.two_stage_measures import measure_two_stages
from attractor.margin import Solution, solve
from attractor.papers.ledger.claim import once
from attractor.training import normalized_gradient_descent

RANDOM_SCALE = 0.06
"""Standard deviation of the entries that random starts have; near that of the published figure."""
_STEP = 1 / 16
"""Length of a step, in norms of the max-margin solution; proofs require less than 1/e and 1/2."""
_GAP = 10
"""Gap of the logits after the first stage."""
_OUTGROWN = (240, 8)
"""The gap from a random start, which it has to outgrow: at least, and per token."""
_BEYOND = 1.25
"""Length of the second stage, in units of the time from which ``settled_after`` on."""
_LONGEST = 20_000
_RECORDS = 60


class Plan(NamedTuple):
    """Lengths of the stages and of their steps.

    Attributes:
        rates: Lengths of the steps of the two stages.
        steps: Numbers of steps of the two stages.
    """

    rates: tuple[float, float]
    steps: tuple[int, int]


@once
def feed_forward_solution(case: CorpusCase) -> Solution:
    """The max-margin solution of the feed-forward layer."""
    return solve(feed_forward_problem(case.structure.collocation, case.table))


@once
def attention_solution(case: CorpusCase) -> Solution:
    """The max-margin solution of attention; the corpus has to have relations."""
    return solve(attention_problem(case.structure.orders, case.table))


def with_collocation(case: CorpusCase) -> tuple[Int[np.ndarray, "k"], Int[np.ndarray, "k"]]:
    """The tokens that have a collocation, and what follows each."""
    follows = case.structure.collocation.next_token
    known = np.flatnonzero(follows >= 0)
    return known, follows[known]


def longest_context(case: CorpusCase) -> int:
    """Number of tokens in the longest context."""
    return case.samples.contexts.shape[1]


def explains(case: CorpusCase) -> Bool[np.ndarray, "N T"]:
    """Mask of the tokens of each distinct context that explain its label."""
    inverse = case.structure.collocation.inverse
    return case.samples.contexts == inverse[case.samples.labels][:, None]


def plan(case: CorpusCase) -> Plan:
    """The plan of training on a case that has relations."""
    first, second = (
        _STEP * float(solution.value)
        for solution in (feed_forward_solution(case), attention_solution(case))
    )
    late = min(int(np.ceil(_BEYOND * settled_after(case, second))), _LONGEST)
    return Plan((first, second), (int(_GAP / _STEP), late))


def settled_after(case: CorpusCase, rate: float) -> int:
    """The step ``ceil(8 L |W*|^2 / eta)`` from which on gradients are compared with the solution.

    Args:
        case: The data.
        rate: The length eta of a step.
    """
    norm = float(attention_solution(case).value)
    return int(np.ceil(8 * longest_context(case) * norm**2 / rate))


@once
def first_stage(case: CorpusCase, seed: int, *, random: bool = False) -> LinearTrajectory:
    """Trains the feed-forward layer.

    Args:
        case: The data.
        seed: Names the start.
        random: Whether to start at random, wherever the case starts, and to go far from there.
    """
    scale = RANDOM_SCALE if random else case.initial_scales[0]
    least, each = _OUTGROWN
    gap = max(least, each * case.corpus.vocabulary_size) if random else _GAP
    steps = int(gap / _STEP)
    known, labels = with_collocation(case)
    return train_linear(
        EmbeddedContexts.one_hot(
            case.table[None, known], labels[None], case.corpus.vocabulary_size
        ),
        normalized_gradient_descent(_STEP * float(feed_forward_solution(case).value)),
        steps=steps,
        initial_scale=scale,
        seed=seed,
        record=_recorded(steps),
        weights="all",
    )


def feed_forward_weights(run: LinearTrajectory) -> Float[np.ndarray, "step V d"]:
    """The feed-forward layer at every record but the start."""
    return run.data["W"].isel(instance=0, seed=0).to_numpy()[1:]


def travelled(case: CorpusCase, run: LinearTrajectory) -> Float[np.ndarray, "step"]:
    """Distance that the first stage has gone at every record but the start: ``t eta``."""
    return run.steps[1:] * _STEP * float(feed_forward_solution(case).value)


@once
def two_stages(case: CorpusCase, seed: int) -> TwoStageTrajectory:
    """Trains both layers.

    Args:
        case: The data.
        seed: Names the start.
    """
    (first, second), steps = plan(case)
    return train_two_stages(
        case.corpus,
        steps=steps,
        optimizers=(normalized_gradient_descent(first), normalized_gradient_descent(second)),
        embeddings=case.table,
        initial_scales=case.initial_scales,
        seed=seed,
        record=np.unique(np.concatenate([_recorded(count) for count in steps])),
        weights="all",
    )


@once
def measured(case: CorpusCase, seed: int) -> xr.Dataset:
    """The measures of the second stage, at every record but the start.

    Args:
        case: The data.
        seed: Names the start.
    """
    solutions = [feed_forward_solution(case)], [attention_solution(case)]
    every = measure_two_stages(two_stages(case, seed), *solutions)
    return every.isel(instance=0, step=slice(1, None))


def attention_weights(case: CorpusCase, seed: int) -> Float[np.ndarray, "step d d"]:
    """The attention matrix at every record but the start."""
    data = two_stages(case, seed).attention.data
    return data["W"].isel(instance=0, seed=0).to_numpy()[1:]


def slope(values: Float[np.ndarray, "records"], places: Float[np.ndarray, "records"]) -> float:
    """Mean slope of values over the last half of the places."""
    middle = int(np.argmin(np.abs(places - places[-1] / 2)))
    return float((values[-1] - values[middle]) / (places[-1] - places[middle]))


def exponent(values: Float[np.ndarray, "records"], places: Float[np.ndarray, "records"]) -> float:
    """Mean slope between the logarithms over the last half of the places."""
    middle = int(np.argmin(np.abs(places - places[-1] / 2)))
    return float(np.log(values[-1] / values[middle]) / np.log(places[-1] / places[middle]))


def _recorded(steps: int) -> Int[np.ndarray, "records"]:
    """Steps evenly spread over the logarithm; the start, half-way and the end among them."""
    spread = np.geomspace(1, steps, _RECORDS).round().astype(int)
    return np.unique(np.concatenate([[0], spread, [max(1, steps // 2), steps]]))
