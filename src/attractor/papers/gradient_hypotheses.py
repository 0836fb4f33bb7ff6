"""The hypothesis on the first step of training."""

from __future__ import annotations

import numpy as np

from attractor.analysis.first_gradient import first_gradient_margin
from attractor.files.case import Case
from attractor.papers.assumption import Assumption, Check
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens

_ON_SCORES = ("W", "p")
"""What moves scores in proportion to its gradient; that of keys and queries vanishes at zero."""


def first_step_ratio(case: Case) -> float:
    """The smallest margin of the first step from zero, in units of the best one."""
    found = first_gradient_margin(
        case.tokens, case.head, selection=case.optimal, parameterization=case.parameterization
    )
    return float(found.relative) * float(case.solution(selection=case.optimal).value)


def _good(case: Case) -> Check:
    if case.parameterization not in _ON_SCORES:
        return Check(False, f"it is one on W or p, and what is trained is {case.parameterization}")
    labels = case.tokens.labels
    if labels is None or not (np.abs(labels) == 1).all():
        return Check(False, "some labels are not -1 or +1")
    if not np.isfinite(case.solution(selection=case.optimal).value):
        return Check(False, "the margin problem of the best tokens has no solution")
    ratio = first_step_ratio(case)
    if np.isnan(ratio):
        return Check(False, "the gradient at zero vanishes")
    return Check(ratio > 0, f"the smallest margin of the first step is {ratio:.3g} of the best one")


GOOD_FIRST_GRADIENT = Assumption(
    "good first gradient",
    "The first step from zero puts the best token of every row ahead.",
    _good,
    lambda: random_unit_tokens(1),
)
