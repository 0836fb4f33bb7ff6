"""The tokens on which mirror descent ends from random starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.files.case import Case
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, trains
from attractor.papers.ledger.claim import once
from attractor.papers.measurements.attended import attended, keeping, scores_at
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import (
    is_locally_optimal,
    normal_starts,
    starts,
    steps_known,
)
from attractor.results.paper import MIRROR_DESCENT as PAPER
from attractor.training import mirror_descent, train

CLAIMS = Claims(PAPER, Case, "mirror-descent")

_LENGTHS = (3000, 21_000, 168_000)
"""Steps of training, and further steps of runs whose tokens are not locally optimal yet."""
SEPARATED = 20.0
"""The least score gap at which a run counts as decided."""


class _Ends(NamedTuple):
    """Attention scores at the end of every decided run, and how many are not decided."""

    scores: Float[np.ndarray, "run sequence query token"]
    undecided: int
    longest: int


@once
def _ends(case: Case, seed: int) -> _Ends:
    W = (normal_starts(case, seed) if case.initial is None else starts(case, seed))[0]
    lengths = _LENGTHS if case.steps is None else (case.steps,)
    moving, longest = np.ones(len(W), bool), 0
    for length in lengths:
        W[moving] = _after(case, W[moving], length)
        longest += length
        moving = np.array([not is_locally_optimal(case, attended(case, each)) for each in W])
        if not moving.any():
            break
    scores = scores_at(case, W)
    ordered = np.sort(scores, axis=-1)
    decided = (ordered[..., -1] - ordered[..., -2]).min((-1, -2)) >= SEPARATED
    return _Ends(scores[decided], int((~decided).sum()), longest)


def _after(
    case: Case, W: Float[np.ndarray, "run d e"], length: int
) -> Float[np.ndarray, "run d e"]:
    """The matrices after further steps of normalized mirror descent, whose state is W alone."""
    p, rate = steps_known(case)
    run = train(
        case.tokens,
        case.head,
        mirror_descent(rate, p),
        steps=length,
        initial=W[None],
        seeds=len(W),
        record=[length],
    )
    return run.W()[0]


Ended = Callable[[Float[np.ndarray, "sequence query token"]], Selection]
"""The tokens that a run ends on, by its attention scores."""


def _share_locally_optimal(case: Case, seed: int, ended: Ended) -> Measurement:
    """The share of decided runs that end on locally optimal tokens."""
    ends = _ends(case, seed)
    holds = [is_locally_optimal(case, ended(scores)) for scores in ends.scores]
    best = case.optimal.mask.argmax(-1)
    details = {
        "p": steps_known(case).p,
        "runs not decided": ends.undecided,
        "runs that end on the optimal tokens": sum(
            bool((scores.argmax(-1) == best).all()) for scores in ends.scores
        ),
        "steps of the longest": ends.longest,
    }
    return Measurement(float(np.mean(holds)) if holds else np.nan, len(holds), details)


def one_token_away(scores: Float[np.ndarray, "sequence query token"]) -> np.ndarray:
    """The runner-up in the row where its score comes nearest; else what is attended to."""
    ordered = np.sort(scores, axis=-1)
    gap = ordered[..., -1] - ordered[..., -2]
    row = np.unravel_index(int(gap.argmin()), gap.shape)
    index = scores.argmax(-1)
    index[row] = np.argsort(scores[row])[-2]
    return index


ENDPOINTS = CLAIMS.claim(
    "endpoints",
    "from random starts, mirror descent ends on locally optimal tokens",
    statement="convergence to locally optimal tokens",
    assuming=(trains("W"), MIRROR_DESCENT, UNIQUE_OPTIMUM),
    contrast=Comparison(
        "share of decided runs whose tokens are locally optimal in the own norm",
        _share_locally_optimal,
        lambda case, seed: lambda scores: keeping(case, scores.argmax(-1)),
        "the same for the tokens one away: the runner-up where it comes nearest",
        lambda case, seed: lambda scores: keeping(case, one_token_away(scores)),
        bound=1.0,
        reason="every one; runs with a score gap below 20 are not decided yet, and not counted",
        sense=">=",
    ),
    data=lambda seed: [
        random_case(4 * seed),
        with_exponent(random_case(4 * seed + 1), 1.5),
        with_exponent(random_case(4 * seed + 2), 2.0),
        random_case(seed + 1, 6, 8, 10),
    ],
    note="runs whose tokens are not locally optimal go on for longer: they can stay near such a "
    "direction for 10,000 steps; the statement says of locally optimal tokens that training near "
    "them stays; that all random starts end on such is measured",
)
