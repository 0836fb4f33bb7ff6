"""The solution of attention: its closed form, and what it says of unseen contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax, softmax

from attractor.corpora import TokenClass
from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.problems import complete_orders_solution
from attractor.papers.claim import Claim, Comparison, Measurement
from attractor.papers.corpus_hypotheses import (
    CHOICE,
    COMPLETE_ORDERS,
    FREQUENT_OPTIMAL,
    ORTHONORMAL,
    REALIZABLE,
    ZERO_START,
)
from attractor.papers.ledger.claim import Assumption
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.data import grammar, missing_relations, random_orders, rolled_out
from attractor.papers.next_token.training import (
    attention_solution,
    attention_weights,
    feed_forward_weights,
    measured,
    plan,
    two_stages,
)

_ASSUMPTIONS = (REALIZABLE, ORTHONORMAL, CHOICE)
ASSUMPTIONS = (*_ASSUMPTIONS, FREQUENT_OPTIMAL, ZERO_START)
"""Those of attention that is trained from zero."""


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


_MOST_QUERIES = 200
_REPEATS = (1, 3)


def _data(seed: int) -> Sequence[CorpusCase]:
    return [grammar(), random_orders(seed), random_orders(seed + 1), rolled_out(seed)]


class _Classes(NamedTuple):
    """The tokens of each class under a query that is in some relation."""

    query: int
    optimal: tuple[int, ...]
    others: tuple[int, ...]
    non_comparable: tuple[int, ...]


def _queries(case: CorpusCase) -> Iterator[_Classes]:
    orders = case.structure.orders
    for query in np.unique(orders.edges[:, 0])[:_MOST_QUERIES].tolist():
        found = orders.classes(query)
        kinds = (TokenClass.OPTIMAL, TokenClass.NON_OPTIMAL, TokenClass.NON_COMPARABLE)
        yield _Classes(query, *(found[kind] for kind in kinds))


def _least_growth(case: CorpusCase, seed: int, direction: Float[np.ndarray, "d d"]) -> Measurement:
    """The least growth of a score gap in the second half, over that along a direction.

    Gaps are those of optimal over non-comparable and of non-comparable over non-optimal tokens.

    Args:
        case: The data.
        seed: Names the start.
        direction: The direction that scores go in.
    """
    steps = measured(case, seed)["step"].to_numpy()
    middle = int(np.argmin(np.abs(steps - steps[-1] / 2)))
    W = attention_weights(case, seed)
    travelled = (steps[-1] - steps[middle]) * plan(case).rates[1]
    growth, claimed = (
        case.table @ matrix @ case.table.T
        for matrix in ((W[-1] - W[middle]) / travelled, direction / np.linalg.norm(direction))
    )
    ratios: list[float] = []
    least = np.inf
    for classes in _queries(case):
        ranked = [*map(list, (classes.optimal, classes.non_comparable, classes.others))]
        for above, below in pairwise(ranked):
            if above and below:
                column = growth[:, classes.query]
                gaps = np.subtract.outer(column[above], column[below])
                column = claimed[:, classes.query]
                stated = np.subtract.outer(column[above], column[below])
                ratios += (gaps / stated).ravel().tolist()
                least = min(least, float(gaps.min()))
    if not ratios:
        return Measurement(np.nan, 0)
    details = {"largest ratio": max(ratios), "least growth over the way": least}
    return Measurement(min(ratios), len(ratios), details)


def _non_comparable_last(case: CorpusCase, seed: int) -> Float[np.ndarray, "d d"]:
    """The solution with non-comparable tokens as far below the non-optimal ones as above them."""
    scores = case.table @ attention_solution(case).W @ case.table.T
    for classes in _queries(case):
        lowest = scores[:, classes.query].min()
        scores[list(classes.non_comparable), classes.query] = 2 * lowest
    return case.table.T @ scores @ case.table


EXTENDED_ORDER = CLAIMS.claim(
    "extended-order",
    "optimal tokens draw away from non-comparable ones, and these from non-optimal ones",
    statement="scores of optimal, non-comparable and non-optimal tokens",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "least growth of a score gap of neighboring classes, over that of the max-margin solution",
        _least_growth,
        lambda case, seed: attention_solution(case).W,
        "the same for a solution with non-comparable tokens below the non-optimal ones",
        _non_comparable_last,
        bound=0.98,
        reason="gaps grow by eta (w_i - w_j)/|W*| a step once W goes along W*",
        sense=">=",
    ),
    data=_data,
    note="published is that gaps grow in proportion to t, with some constant; by how much is "
    "derived, not quoted",
)


class _Unseen(NamedTuple):
    """A context that the corpus does not have.

    Attributes:
        tokens: Its tokens, the query last.
        deciding: The token that explains what follows.
        other: One that does not.
    """

    tokens: list[int]
    deciding: int
    other: int


_Explaining = Callable[[_Unseen], int]


def _without_optimal(case: CorpusCase) -> Iterator[_Unseen]:
    """A non-comparable token, once or more often, with all non-optimal ones, the query last."""
    for classes in _queries(case):
        if classes.query not in classes.others:  # the query is in every context
            continue
        rest = [token for token in classes.others if token != classes.query]
        for token in classes.non_comparable:
            for times in _REPEATS:
                yield _Unseen([*times * [token], *rest, classes.query], token, classes.query)


def _with_optimal(case: CorpusCase) -> Iterator[_Unseen]:
    """An optimal token with a non-comparable one, or with several, the query last."""
    for classes in _queries(case):
        for token in classes.optimal:
            several = [[other] for other in classes.non_comparable] + [classes.non_comparable]
            for others in several:
                if others:
                    yield _Unseen([token, *others, classes.query], token, others[0])


def _share_right(
    case: CorpusCase, seed: int, contexts: Iterator[_Unseen], explaining: _Explaining
) -> Measurement:
    """The share of contexts after which the follower of the token that explains is predicted."""
    run = two_stages(case, seed)
    W, W_ov = attention_weights(case, seed)[-1], feed_forward_weights(run.feed_forward)[-1]
    follows = case.structure.collocation.next_token
    right, chances = 0, []
    for context in contexts:
        expected = follows[explaining(context)]
        if expected < 0:
            continue
        keys = case.table[context.tokens]
        logits = W_ov @ (softmax(keys @ W @ keys[-1]) @ keys)
        chances.append(float(np.exp(log_softmax(logits)[expected])))
        right += int(np.argmax(logits) == expected)
    if not chances:
        return Measurement(np.nan, 0)
    details = {"mean probability": float(np.mean(chances)), "least": min(chances)}
    return Measurement(right / len(chances), len(chances), details)


def _contrast(
    contexts: Callable[[CorpusCase], Iterator[_Unseen]], other: str
) -> Comparison[CorpusCase, _Explaining]:
    """The share of contexts after which the right follower is predicted, and another one."""
    return Comparison(
        "share of unseen contexts after which its follower is predicted",
        lambda case, seed, token: _share_right(case, seed, contexts(case), token),
        lambda *_: attrgetter("deciding"),
        f"share of them after which the follower of {other} is predicted",
        lambda *_: attrgetter("other"),
        bound=1.0,
        reason="it is claimed of all",
        sense=">=",
    )


UNSEEN_CONTEXTS = CLAIMS.claim(
    "unseen-contexts",
    "beside non-optimal tokens alone a non-comparable token explains what follows",
    statement="prediction of unseen sentences without an optimal token",
    assuming=ASSUMPTIONS,
    contrast=_contrast(_without_optimal, "the query"),
    data=_data,
    note="queries that are optimal themselves have no such contexts; two different non-comparable "
    "tokens tie",
)
UNSEEN_CONTEXTS_WITH_OPTIMAL = CLAIMS.claim(
    "unseen-contexts-with-an-optimal-token",
    "beside non-comparable tokens an optimal token explains what follows",
    statement="prediction of unseen sentences with an optimal token",
    assuming=ASSUMPTIONS,
    contrast=_contrast(_with_optimal, "a non-comparable token"),
    data=_data,
)
