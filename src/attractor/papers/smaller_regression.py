"""The smallest task of in-context regression on which a claim still fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.errors import InvalidInputError
from attractor.papers.trial import Trial

if TYPE_CHECKING:
    from attractor.papers.regression_case import RegressionCase

_COVARIANCES = ("covariance", "query_covariance")
_DIGITS = (0, 1, 2)


def smaller_regression(case: RegressionCase, trial: Trial) -> RegressionCase:
    """A case less what a counterexample does not need; itself where nothing can go.

    Inputs go first, then prompts, then noise and other laws of queries, and in the end digits.

    Args:
        case: The counterexample.
        trial: Examines candidates.
    """
    for place in reversed(range(case.task.dimension)):
        if case.task.dimension > 1:
            case = _if_it_fails(case, _without_input(case, place), trial)
    for place in reversed(range(len(case.lengths))):
        if len(case.lengths) > 1:
            kept = case.lengths[:place] + case.lengths[place + 1 :]
            case = _if_it_fails(case, [{"lengths": kept}], trial)
    plain = {"query_covariance": None, "label_noise": 0.0, "query_noise": 0.0}
    for name, value in (*plain.items(), ("weight_variance", 1.0)):
        case = _if_it_fails(case, _with_task(case, {name: value}), trial)
    return _if_it_fails(case, _rounded(case), trial)


def _if_it_fails(
    case: RegressionCase, changes: Iterator[dict[str, Any]] | list[dict[str, Any]], trial: Trial
) -> RegressionCase:
    """The case with the first change on which the claim fails, or itself."""
    for change in changes:
        candidate = case.replace(**change)
        if candidate.hash != case.hash and trial.fails(candidate):
            return candidate
    return case


def _without_input(case: RegressionCase, place: int) -> Iterator[dict[str, Any]]:
    kept = np.ix_(*[np.delete(np.arange(case.task.dimension), place)] * 2)
    return _with_task(case, {name: getattr(case.task, name)[kept] for name in _COVARIANCES})


def _with_task(case: RegressionCase, change: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The change of the task, where it is still one."""
    try:
        yield {"task": dataclasses.replace(case.task, **change)}
    except InvalidInputError:
        return


def _rounded(case: RegressionCase) -> Iterator[dict[str, Any]]:
    for digits in _DIGITS:
        rounded = {name: np.round(getattr(case.task, name), digits) for name in _COVARIANCES}
        yield from _with_task(case, rounded)
