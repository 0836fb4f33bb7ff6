"""Where gradient descent takes attention whose labels conflict."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.files.corpus import CorpusCase
from attractor.next_token.mechanics import label_mass_tokens
from attractor.papers.claim import Claims, Contrast
from attractor.papers.next_token.claims.conflicting_labels import CYCLIC
from attractor.papers.next_token.conflicting_data import limits, random_labels
from attractor.papers.next_token.decades import DECADES, against_beginning, last_decade
from attractor.papers.paper import MECHANICS
from attractor.training import gradient_descent, train

CLAIMS = Claims(MECHANICS, CorpusCase, "next-token")

_LEARNING_RATE = 0.5


def _matrices(case: CorpusCase) -> list[Float[np.ndarray, "d d"]]:
    """Attention at the three steps, trained from zero."""

    def compute() -> list[Float[np.ndarray, "d d"]]:
        tokens, head = label_mass_tokens(case.corpus, case.table)
        run = train(
            tokens,
            head,
            gradient_descent(_LEARNING_RATE),
            steps=DECADES[-1],
            loss="negative_log",
            initial=np.zeros((tokens.key_dimension, tokens.key_dimension)),
            record=DECADES,
            weights="all",
        )
        return [run.W(float(step))[0, 0] for step in DECADES]

    return case.once("raw descent", compute)


CONFLICTING_DIRECTION = CLAIMS.claim(
    "conflicts-leave-the-direction",
    "gradient descent carries attention to infinity along the graphs' margin solution",
    statement="global convergence of gradient descent, direction",
    assuming=CYCLIC,
    contrast=Contrast(
        "1 - cos of the solution and what steps 2,000 to 20,000 add to W",
        lambda case, seed: last_decade(_matrices(case), limits(case).direction),
        "1 - cos of that and W after 20 steps, as if the direction were that of the beginning",
        lambda case, seed: against_beginning(_matrices(case)),
        bound=1.5e-2,
        reason="W itself, which is the solution times log t and a part that stays bounded, turns "
        "like 1/log t; what a decade adds is free of the bounded part",
    ),
    data=lambda seed: [random_labels(number, cyclic=True) for number in range(seed, seed + 4)],
)
