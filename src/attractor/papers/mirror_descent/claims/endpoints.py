"""Which tokens mirror descent ends on from random starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attractor.geometry import Lp
from attractor.margin import check_local_optimality
from attractor.papers.case import Case
from attractor.papers.claim import Claim, Conclusion, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, trains
from attractor.papers.measurements.directions import step_length
from attractor.papers.mirror_descent.claims._examples import BROKEN, with_exponent
from attractor.papers.mirror_descent.claims.regularization_path import tied_scores
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import STARTS, steps_known
from attractor.papers.paper import MIRROR_DESCENT as PAPER
from attractor.selection import Selection
from attractor.training import Trajectory, mirror_descent, train

_LENGTH = 3000
_SEPARATED = 20.0
"""The least score gap at which a run counts as decided."""


def _run(case: Case, seed: int) -> Trajectory:
    steps = steps_known(case)
    shape = (case.tokens.key_dimension, case.tokens.query_dimension)
    if case.initial is None:
        size = step_length(case) / 0.1
        places = size * np.random.default_rng([seed, 31]).standard_normal((1, STARTS, *shape))
    else:
        places = np.reshape(case.initial, (1, 1, *shape)).astype(float)
    return case.once(
        ("mirror descent from random starts", seed),
        lambda: train(
            case.tokens,
            case.head,
            mirror_descent(steps.learning_rate, steps.p),
            steps=_LENGTH if case.steps is None else case.steps,
            initial=places,
            seeds=places.shape[1],
            seed=seed,
        ),
    )


def _share_locally_optimal(
    case: Case, seed: int, kept: Callable[[np.ndarray], np.ndarray]
) -> Measurement:
    """The share of decided runs of whose scores ``kept`` makes a locally optimal selection."""
    geometry, tokens = Lp(steps_known(case).p), case.tokens
    scores = np.where(tokens.mask, tokens.scores(_run(case, seed).W()[0]), -np.inf)
    ordered = np.sort(scores, axis=-1)
    gaps = (ordered[..., -1] - ordered[..., -2]).min((-1, -2))
    decided = scores[gaps >= _SEPARATED]
    holds, best = [], []
    for each in decided:
        selection = Selection.from_index(tokens, kept(each))
        solution = case.solution(geometry, selection)
        found = check_local_optimality(tokens, case.head, selection, solution)
        holds.append(bool(found.holds))
        best.append(selection == case.optimal)
    share = float(np.mean(holds)) if holds else np.nan
    details = {
        "p": geometry.p,
        "runs not decided": int(len(scores) - len(decided)),
        "runs that end on the optimal tokens": int(np.sum(best)),
    }
    return Measurement(share, len(decided), details)


def _attended(scores: np.ndarray) -> np.ndarray:
    return scores.argmax(-1)


def _one_token_away(scores: np.ndarray) -> np.ndarray:
    """The runner-up in the row where its score comes nearest; else what is attended to."""
    ordered = np.sort(scores, axis=-1)
    gap = ordered[..., -1] - ordered[..., -2]
    row = np.unravel_index(int(gap.argmin()), gap.shape)
    index = scores.argmax(-1)
    index[row] = np.argsort(scores[row])[-2]
    return index


ENDPOINTS = Claim(
    name="mirror-descent/endpoints",
    paper=PAPER,
    statement="convergence to locally optimal tokens",
    summary="from random starts, mirror descent ends on locally optimal tokens",
    assumptions=(trains("W"), MIRROR_DESCENT, UNIQUE_OPTIMUM),
    conclusion=Conclusion(
        "share of decided runs whose tokens are locally optimal in the own norm",
        lambda case, seed: _share_locally_optimal(case, seed, _attended),
        bound=1.0,
        sense=">=",
        reason="every one; runs with a score gap below 20 are not decided yet, and not counted",
    ),
    control=Conclusion(
        "the same for the tokens one away: the runner-up where it comes nearest",
        lambda case, seed: _share_locally_optimal(case, seed, _one_token_away),
        bound=1.0,
        sense=">=",
        reason="the same, for selections that differ in one row",
    ),
    data=lambda seed: [
        random_case(4 * seed),
        with_exponent(random_case(4 * seed + 1), 1.5),
        with_exponent(random_case(4 * seed + 2), 2.0),
        random_case(seed + 1, 6, 8, 10),
    ],
    broken={
        **{name: BROKEN[name] for name in ("parameterization", "mirror descent")},
        "unique optimum": tied_scores,
    },
    note="the statement says of locally optimal tokens that training near them stays; that all "
    "random starts end on such is measured, and that many of them are not the optimal ones",
)
