"""The smallest head on which a claim still fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from attractor.errors import InvalidInputError
from attractor.files.head_layout import fewest_tokens
from attractor.papers.trial import Trial
from attractor.prompt.head import Head
from attractor.prompt.measures.contract import Measure
from attractor.prompt.measures.empirical import Empirical
from attractor.prompt.measures.gaussian import Gaussian

if TYPE_CHECKING:
    from attractor.papers.head_case import HeadCase

_DIGITS = (0, 1, 2)
_FEWEST_QUERIES = 2


def smaller_head(case: HeadCase, trial: Trial) -> HeadCase:
    """A case less what a counterexample does not need; itself where nothing can go.

    Outputs go first, then coordinates of tokens and of queries, then samples, and in the end
    digits, all of them where that is enough.

    Args:
        case: The counterexample.
        trial: Examines candidates.
    """
    for without in (_without_output, _without_token_coordinate, _without_query_coordinate):
        for place in reversed(range(max(case.V.shape[0], *case.U.shape))):
            case = _if_it_fails(case, partial(without, place=place), trial)
    for name in ("tokens", "queries"):
        before = None
        while before is not case:
            before = case
            case = _if_it_fails(case, partial(_with_half, name=name), trial)
    rounded = [partial(_rounded, digits=digits) for digits in _DIGITS]
    for simplified in (_without_scores, _with_ones, _with_standard_laws, *rounded):
        case = _if_it_fails(case, simplified, trial)
    return case


def _if_it_fails(
    case: HeadCase, change: Callable[[HeadCase], HeadCase | None], trial: Trial
) -> HeadCase:
    """The case with a change, or itself where the claim does not fail on that."""
    try:
        return trial.smaller_of(case, change(case))
    except InvalidInputError:  # rounding made a law impossible
        return case


def _without_output(case: HeadCase, place: int) -> HeadCase | None:
    kept = _others(case.V.shape[0], place)
    return None if kept is None else case.replace(head=Head(case.U, case.V[kept]))


def _without_token_coordinate(case: HeadCase, place: int) -> HeadCase | None:
    kept = _others(case.U.shape[0], place)
    if kept is None:
        return None
    head = Head(case.U[kept], case.V[:, kept])
    return case.replace(head=head, tokens=_of_coordinates(case.tokens, kept))


def _without_query_coordinate(case: HeadCase, place: int) -> HeadCase | None:
    kept = _others(case.U.shape[1], place)
    if kept is None:
        return None
    head = Head(case.U[:, kept], case.V)
    return case.replace(head=head, queries=_of_coordinates(case.queries, kept))


def _others(count: int, place: int) -> np.ndarray | None:
    """All places but one; None where there is no such place, or no other."""
    return np.delete(np.arange(count), place) if place < count and count > 1 else None


def _of_coordinates(law: Measure, kept: np.ndarray) -> Measure:
    return law.pushforward(np.eye(law.dimension)[kept])


def _with_half(case: HeadCase, name: str) -> HeadCase | None:
    """The case with half the samples, or None where that is too few for a file, or none are."""
    law = getattr(case, name)
    if not isinstance(law, Empirical) or law.weights is not None:
        return None
    count = len(law.points) // 2
    fewest = fewest_tokens(law.dimension) if name == "tokens" else _FEWEST_QUERIES
    return None if count < fewest else case.replace(**{name: Empirical(law.points[:count])})


def _without_scores(case: HeadCase) -> HeadCase:
    return case.replace(head=Head(np.zeros_like(case.U), case.V))


def _with_ones(case: HeadCase) -> HeadCase:
    return case.replace(head=Head(case.U, np.eye(*case.V.shape)))


def _with_standard_laws(case: HeadCase) -> HeadCase:
    """The case with standard normal laws where they are Gaussian."""
    laws = {"tokens": case.tokens, "queries": case.queries}
    standard = {
        name: Gaussian.isotropic(law.dimension)
        for name, law in laws.items()
        if isinstance(law, Gaussian)
    }
    return case.replace(**standard)


def _rounded(case: HeadCase, digits: int) -> HeadCase:
    return case.replace(
        head=Head(np.round(case.U, digits), np.round(case.V, digits)),
        tokens=_rounded_law(case.tokens, digits),
        queries=_rounded_law(case.queries, digits),
    )


def _rounded_law(law: Measure, digits: int) -> Measure:
    if isinstance(law, Gaussian):
        return Gaussian(np.round(law.mean, digits), np.round(law.covariance, digits))
    if isinstance(law, Empirical):
        return Empirical(np.round(law.points, digits), law.weights)
    return law
