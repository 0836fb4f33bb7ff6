"""The smallest task of in-context regression on which a claim still fails."""

from __future__ import annotations

import dataclasses
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
            case = trial.smaller_of(case, _without_input(case, place))
    for place in reversed(range(len(case.lengths))):
        if len(case.lengths) > 1:
            kept = case.lengths[:place] + case.lengths[place + 1 :]
            case = trial.smaller_of(case, case.replace(lengths=kept))
    plain = {"query_covariance": None, "label_noise": 0.0, "query_noise": 0.0}
    for name, value in (*plain.items(), ("weight_variance", 1.0)):
        case = trial.smaller_of(case, _with_task(case, {name: value}))
    for digits in _DIGITS:
        rounded = trial.smaller_of(case, _rounded(case, digits))
        if rounded is not case:
            return rounded
    return case


def _without_input(case: RegressionCase, place: int) -> RegressionCase | None:
    kept = np.ix_(*[np.delete(np.arange(case.task.dimension), place)] * 2)
    return _with_task(case, {name: getattr(case.task, name)[kept] for name in _COVARIANCES})


def _with_task(case: RegressionCase, change: dict[str, Any]) -> RegressionCase | None:
    """The case with its task changed, where that is still one."""
    try:
        return case.replace(task=dataclasses.replace(case.task, **change))
    except InvalidInputError:
        return None


def _rounded(case: RegressionCase, digits: int) -> RegressionCase | None:
    rounded = {name: np.round(getattr(case.task, name), digits) for name in _COVARIANCES}
    return _with_task(case, rounded)
