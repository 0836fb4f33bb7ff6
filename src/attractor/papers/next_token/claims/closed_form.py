"""The closed form of the max-margin solution of attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.problems import complete_orders_solution
from attractor.papers.claim import Claim, Comparison, Measurement
from attractor.papers.corpus_hypotheses import CHOICE, COMPLETE_ORDERS, ORTHONORMAL, REALIZABLE
from attractor.papers.ledger.claim import Assumption
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.data import grammar, missing_relations, random_orders, rolled_out
from attractor.papers.next_token.training import attention_solution

_ASSUMPTIONS = (REALIZABLE, ORTHONORMAL, CHOICE)


def _distance_from(case: CorpusCase, seed: int, scores: Float[np.ndarray, "V V"]) -> Measurement:
    """Relative distance of the solution from a matrix of scores of tokens under queries."""
    solution = attention_solution(case)
    stated = case.table.T @ scores @ case.table
    norm = float(solution.value)
    details = {"norm of the solution": norm, "norm stated": float(np.linalg.norm(stated))}
    distance = float(np.linalg.norm(stated - solution.W)) / norm
    return Measurement(distance, len(case.structure.orders.edges), details)


def raised_alone(case: CorpusCase) -> Float[np.ndarray, "V V"]:
    """Scores that meet every constraint: one for optimal tokens and zero for all others."""
    orders = case.structure.orders
    scores = np.zeros((orders.size, orders.size))
    query, token = orders.optimal.T
    scores[token, query] = 1.0
    return scores


def _claim(
    name: str,
    summary: str,
    assumptions: tuple[Assumption[CorpusCase], ...],
    data: Callable[[int], Sequence[CorpusCase]],
    note: str,
) -> Claim[CorpusCase]:
    return CLAIMS.claim(
        name,
        summary,
        statement="closed form of the max-margin solution of attention",
        assuming=assumptions,
        contrast=Comparison(
            "distance of the solution from the closed form, over its norm",
            _distance_from,
            lambda case, seed: complete_orders_solution(case.structure.orders),
            "distance from scores of one for optimal tokens and zero for all others",
            lambda case, seed: raised_alone(case),
            bound=1e-6,
            reason="rounding of the solver; a relation that matters makes 1e-2 or more",
        ),
        data=data,
        note=note,
    )


CLOSED_FORM = _claim(
    "closed-form",
    "under each query the solution depends on the numbers of optimal and non-optimal tokens alone",
    _ASSUMPTIONS,
    lambda seed: [
        grammar(),
        random_orders(seed),
        rolled_out(seed),
        missing_relations(),
        *(random_orders(number, complete=False) for number in range(seed, seed + 3)),
    ],
    "stated of every realizable data set; its proof writes a multiplier for every pair of an "
    "optimal and a non-optimal token, whether or not any context compares the two",
)
CLOSED_FORM_COMPLETE = _claim(
    "closed-form-of-complete-orders",
    "where all optimal tokens are compared with all non-optimal ones, the closed form is right",
    (*_ASSUMPTIONS, COMPLETE_ORDERS),
    lambda seed: [
        grammar(),
        *(random_orders(number) for number in range(seed, seed + 3)),
        rolled_out(seed),
        missing_relations(),
    ],
    "the published statement with the assumption that makes it true",
)
