"""No finite stationary point of training W."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims
from attractor.papers.hypotheses import (
    EQUAL_SCORES_OR_ALL_SUPPORT,
    OPTIMUM_FEASIBLE,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.max_margin.claims import no_stationary_point as prompt
from attractor.papers.transformers_as_svms.random_data import SMALL, equal_other_scores
from attractor.results.paper import TRANSFORMERS_AS_SVMS

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)


def all_tokens_support(seed: int, size: tuple[int, int, int] = SMALL) -> Case:
    """Nearly orthogonal keys and queries with random scores: every margin is one.

    Args:
        seed: Names the data.
        size: Sequences n, tokens T and dimension d; for n and T at most d.
    """
    n, length, d = size
    random = np.random.default_rng([seed, 31])
    keys = np.eye(length, d) + 0.02 * random.standard_normal((n, length, d))
    queries = np.eye(n, d) + 0.02 * random.standard_normal((n, d))
    scores = random.standard_normal((n, length))
    return Case.from_scores(
        keys,
        scores,
        queries=queries,
        parameterization="W",
        about=f"nearly orthogonal tokens {size}, seed {seed}",
    )


NO_STATIONARY_POINT = CLAIMS.claim(
    "no-stationary-point",
    "descent on W always gains along the Frobenius solution: no finite stationary point",
    statement="absence of finite stationary points",
    assuming=(trains("W"), UNIQUE_OPTIMUM, OPTIMUM_FEASIBLE, EQUAL_SCORES_OR_ALL_SUPPORT),
    contrast=prompt.CONTRAST,
    data=lambda seed: [
        make(number)
        for number in range(seed, seed + 3)
        for make in (equal_other_scores, all_tokens_support)
    ],
    holding=lambda: all_tokens_support(0),
    note="nothing like it is true of keys and queries: K = Q = 0 is always stationary; with equal "
    "scores descent gains along every direction that separates the best tokens",
)
