"""Predictions after contexts that the corpus does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from attractor.files.corpus import CorpusCase
from attractor.next_token import TokenClass
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims.attention_path import ASSUMPTIONS
from attractor.papers.next_token.data import grammar, random_orders, rolled_out
from attractor.papers.next_token.training import (
    attention_solution,
    attention_weights,
    feed_forward_weights,
    measured,
    plan,
    two_stages,
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


def _least_growth(case: CorpusCase, seed: int, order: Sequence[int]) -> Measurement:
    """The least growth of a score gap in the second half, over that of the solution.

    Args:
        case: The data.
        seed: Names the start.
        order: The claimed order of the classes optimal, non-comparable, non-optimal.
    """
    steps = measured(case, seed)["step"].to_numpy()
    middle = int(np.argmin(np.abs(steps - steps[-1] / 2)))
    W = attention_weights(case, seed)
    travelled = (steps[-1] - steps[middle]) * plan(case).rates[1]
    growth, solution = (
        case.table @ matrix @ case.table.T
        for matrix in ((W[-1] - W[middle]) / travelled, attention_solution(case).W)
    )
    solution = solution / float(attention_solution(case).value)
    ratios: list[float] = []
    least = np.inf
    for classes in _queries(case):
        kinds = (classes.optimal, classes.non_comparable, classes.others)
        ranked = [list(kinds[place]) for place in order]
        for above, below in ((ranked[0], ranked[1]), (ranked[1], ranked[2])):
            if above and below:
                column = growth[:, classes.query]
                gaps = np.subtract.outer(column[above], column[below])
                column = solution[:, classes.query]
                stated = np.abs(np.subtract.outer(column[above], column[below]))
                ratios += (gaps / stated).ravel().tolist()
                least = min(least, float(gaps.min()))
    if not ratios:
        return Measurement(np.nan, 0)
    details = {"largest ratio": max(ratios), "least growth over the way": least}
    return Measurement(min(ratios), len(ratios), details)


EXTENDED_ORDER = CLAIMS.claim(
    "extended-order",
    "optimal tokens draw away from non-comparable ones, and these from non-optimal ones",
    statement="scores of optimal, non-comparable and non-optimal tokens",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "least growth of a score gap of neighboring classes, over that of the max-margin solution",
        lambda case, seed: _least_growth(case, seed, (0, 1, 2)),
        "the same for non-comparable tokens below the non-optimal ones",
        lambda case, seed: _least_growth(case, seed, (0, 2, 1)),
        bound=0.98,
        reason="gaps grow by eta (w_i - w_j)/|W*| a step once W goes along W*",
        sense=">=",
    ),
    data=_data,
    note="published is that gaps grow in proportion to t, with some constant; by how much is "
    "derived, not quoted",
)

Contexts = Iterator[tuple[list[int], int, int]]
"""Contexts, each with the token that explains what follows, and with one that does not."""


def _without_optimal(case: CorpusCase) -> Contexts:
    """A non-comparable token, once or more often, with all non-optimal ones, the query last."""
    for classes in _queries(case):
        if classes.query not in classes.others:  # the query is in every context
            continue
        rest = [token for token in classes.others if token != classes.query]
        for token in classes.non_comparable:
            for times in _REPEATS:
                yield [*times * [token], *rest, classes.query], token, classes.query


def _with_optimal(case: CorpusCase) -> Contexts:
    """An optimal token with a non-comparable one, or with several, the query last."""
    for classes in _queries(case):
        for token in classes.optimal:
            several = [[other] for other in classes.non_comparable] + [classes.non_comparable]
            for others in several:
                if others:
                    yield [token, *others, classes.query], token, others[0]


def _share_right(case: CorpusCase, seed: int, contexts: Contexts, *, wrong: bool) -> Measurement:
    """The share of contexts after which the follower of the right or wrong token is predicted."""
    run = two_stages(case, seed)
    W, W_ov = attention_weights(case, seed)[-1], feed_forward_weights(run.feed_forward)[-1]
    follows = case.structure.collocation.next_token
    right, chances = 0, []
    for context, explaining, other in contexts:
        expected = follows[other if wrong else explaining]
        if expected < 0:
            continue
        keys = case.table[context]
        logits = W_ov @ (softmax(keys @ W @ keys[-1]) @ keys)
        chances.append(float(np.exp(log_softmax(logits)[expected])))
        right += int(np.argmax(logits) == expected)
    if not chances:
        return Measurement(np.nan, 0)
    details = {"mean probability": float(np.mean(chances)), "least": min(chances)}
    return Measurement(right / len(chances), len(chances), details)


UNSEEN_CONTEXTS = CLAIMS.claim(
    "unseen-contexts",
    "beside non-optimal tokens alone a non-comparable token explains what follows",
    statement="prediction of unseen sentences without an optimal token",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "share of unseen contexts after which its follower is predicted",
        lambda case, seed: _share_right(case, seed, _without_optimal(case), wrong=False),
        "share of them after which the follower of the query is predicted",
        lambda case, seed: _share_right(case, seed, _without_optimal(case), wrong=True),
        bound=1.0,
        reason="it is claimed of all",
        sense=">=",
    ),
    data=_data,
    note="queries that are optimal themselves have no such contexts; two different non-comparable "
    "tokens tie",
)
UNSEEN_CONTEXTS_WITH_OPTIMAL = CLAIMS.claim(
    "unseen-contexts-with-an-optimal-token",
    "beside non-comparable tokens an optimal token explains what follows",
    statement="prediction of unseen sentences with an optimal token",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "share of unseen contexts after which its follower is predicted",
        lambda case, seed: _share_right(case, seed, _with_optimal(case), wrong=False),
        "share of them after which the follower of a non-comparable token is predicted",
        lambda case, seed: _share_right(case, seed, _with_optimal(case), wrong=True),
        bound=1.0,
        reason="it is claimed of all",
        sense=">=",
    ),
    data=_data,
)
