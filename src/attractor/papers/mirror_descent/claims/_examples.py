"""Data of the claims about mirror descent."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.geometry import Lp
from attractor.margin import check_local_optimality
from attractor.margin.selection import Selection
from attractor.papers.claim import Measurement
from attractor.papers.measurements.attended import choosing, keeping
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.training import length, steps_known

P_3 = "mirror descent:p=3,learning_rate=5"
"""With p = 3 norms grow like the square root of the steps, and longer ones are small still."""


def with_exponent(case: Case, p: float) -> Case:
    """The case with mirror descent of an exponent up to 2, in steps of 0.1."""
    return case.replace(optimizer=f"mirror descent:p={p:g},learning_rate=0.1")


def another_norm(case: Case) -> Lp:
    """The norm of gradient descent; for p = 2, that of p = 1.75."""
    return Lp(1.75) if steps_known(case).p == 2 else Lp(2)


def examples(seed: int) -> list[Case]:
    """Random data with the optimal tokens, for four exponents, and one with other tokens."""
    first = 4 * seed
    return [
        random_case(first),
        with_exponent(random_case(first + 1), 1.5),
        with_exponent(random_case(first + 2), 2.0),
        random_case(first + 3).replace(optimizer=P_3),
        other_tokens(),
    ]


def other_tokens() -> Case:
    """Random data with a selection that is locally optimal and not optimal."""
    return choosing(random_case(23), [[0], [3], [3]], "a local optimum")


def out_of_reach(case: Case) -> Measurement:
    """The measurement where training would take too many steps."""
    return Measurement(float("nan"), 0, {"steps needed": length(case)})


def next_to_selection(case: Case, *, locally_optimal: bool = False) -> Selection | None:
    """A feasible selection that differs in one row; None if there is none.

    Args:
        case: The data.
        locally_optimal: Whether it is to be locally optimal, or not.
    """
    geometry = steps_known(case).geometry
    index = case.selection.mask.argmax(-1)
    for row in np.ndindex(index.shape):
        for token in np.flatnonzero(case.tokens.mask[row]):
            other = index.copy()
            other[row] = token
            selection = keeping(case, other)
            solution = case.solution(geometry, selection)
            if token == index[row] or not np.isfinite(solution.value):
                continue
            found = check_local_optimality(case.tokens, case.head, selection, solution)
            if bool(found.holds) == locally_optimal:
                return selection
    return None
