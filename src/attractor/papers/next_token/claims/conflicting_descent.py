"""Where gradient descent takes attention whose labels conflict."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.next_token.mechanics import label_mass_tokens
from attractor.next_token.two_stage_measures import direction_distance
from attractor.papers.claim import Claim, Conclusion, Measurement
from attractor.papers.corpus_case import CorpusCase
from attractor.papers.data_set import DataKind
from attractor.papers.next_token.claims.conflicting_labels import BROKEN, CYCLIC
from attractor.papers.next_token.conflicting_data import limits, random_labels
from attractor.papers.paper import MECHANICS
from attractor.training import gradient_descent, train

_LEARNING_RATE = 0.5
_DECADES = (20, 2_000, 20_000)
"""Steps at which attention is looked at; what the last decade adds is held against the limit."""


def _matrices(case: CorpusCase) -> list[Float[np.ndarray, "d d"]]:
    """Attention at the three steps, trained from zero."""

    def compute() -> list[Float[np.ndarray, "d d"]]:
        tokens, head = label_mass_tokens(case.corpus, case.table)
        run = train(
            tokens,
            head,
            gradient_descent(_LEARNING_RATE),
            steps=_DECADES[-1],
            loss="negative_log",
            initial=np.zeros((tokens.key_dimension, tokens.key_dimension)),
            record=_DECADES,
            weights="all",
        )
        return [run.W(float(step))[0, 0] for step in _DECADES]

    return case.once("raw descent", compute)


def _last_decade(case: CorpusCase, seed: int) -> Measurement:
    _, before, after = _matrices(case)
    solution = limits(case).direction
    added = (after - before) / np.log(_DECADES[-1] / _DECADES[-2])
    details = {
        "norm added per unit of log t, over that of the solution": float(
            np.linalg.norm(added) / float(solution.value)
        ),
        "1 - cos of W itself": float(direction_distance(after, solution.W)),
    }
    return Measurement(float(direction_distance(added, solution.W)), 1, details)


def _against_beginning(case: CorpusCase, seed: int) -> Measurement:
    first, before, after = _matrices(case)
    return Measurement(float(direction_distance(after - before, first)))


CONFLICTING_DIRECTION = Claim(
    name="next-token/conflicts-leave-the-direction",
    paper=MECHANICS,
    statement="global convergence of gradient descent, direction",
    summary="gradient descent carries attention to infinity along the graphs' margin solution",
    assumptions=CYCLIC,
    conclusion=Conclusion(
        "1 - cos of the solution and what steps 2,000 to 20,000 add to W",
        _last_decade,
        bound=1.5e-2,
        reason="W itself, which is the solution times log t and a part that stays bounded, turns "
        "like 1/log t; what a decade adds is free of the bounded part",
    ),
    control=Conclusion(
        "1 - cos of that and W after 20 steps, as if the direction were that of the beginning",
        _against_beginning,
        bound=1.5e-2,
        reason="as for the solution",
    ),
    data=lambda seed: [random_labels(number, cyclic=True) for number in range(seed, seed + 4)],
    broken={each.name: BROKEN[each.name] for each in CYCLIC},
    takes=DataKind.CORPUS,
)
