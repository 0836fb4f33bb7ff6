"""The hypotheses of statements about mirror descent."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.geometry import Lp
from attractor.papers.hypotheses import ONE_TOKEN_A_ROW, locally_optimal, trains
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.measurements.attended import keeping
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.training import (
    NARROWEST,
    cone_of,
    in_cone,
    steps_known,
    steps_of,
)

_SMALL = 0.05
"""The longest step, relative to the dual norm of the start."""


def _mirror_descent(case: Case) -> Check:
    steps = steps_of(case)
    if steps is None:
        return Check(False, f"the optimizer is {case.optimizer}")
    return Check(True, f"p = {steps.p:g}, learning rate {steps.learning_rate:g}")


MIRROR_DESCENT = Assumption(
    "mirror descent",
    "Steps are those of mirror descent with the potential of p-th powers, p > 1.",
    _mirror_descent,
    lambda: random_case(0).replace(optimizer="sign descent:learning_rate=0.1"),
)


def _locally_optimal(case: Case) -> Check:
    return locally_optimal(Lp(steps_known(case).p)).check(case)


LOCALLY_OPTIMAL_IN_OWN_NORM = Assumption(
    "locally optimal",
    "The selection is feasible, and its support tokens in the norm descended in have lower scores.",
    _locally_optimal,
    lambda: random_case(0).replace(chosen=keeping(random_case(0), np.array([[1], [1], [2]]))),
)


def _close_start(case: Case) -> Check:
    cone = cone_of(case)
    if cone.slack < NARROWEST:
        return Check(
            False,
            f"a token of higher score is only {cone.slack:.2g} beyond the margin: no start is",
        )
    if case.initial is None:
        return Check(True, f"random starts of norm {cone.norm:.4g}")
    initial = np.reshape(case.initial, (case.tokens.key_dimension, -1)).astype(float)
    where = "close" if in_cone(case, initial) else "not close, or not far enough out"
    return Check(where == "close", f"the start is {where}")


CLOSE_START = Assumption(
    "close start",
    "Training starts near the direction of the solution, and far out: every other token is "
    "behind by half the margin, those of higher score by more.",
    _close_start,
    lambda: random_case(0).replace(initial=-50 * random_case(0).solution(Lp(1.75)).W),
)


def _small_steps(case: Case) -> Check:
    steps = steps_known(case)
    ratio = steps.learning_rate / cone_of(case).norm ** (steps.p - 1)
    return Check(ratio <= _SMALL, f"a step is {ratio:.2g} of the dual norm of the start")


SMALL_STEPS = Assumption(
    "small steps",
    "The learning rate is small beside the dual norm of the start.",
    _small_steps,
    lambda: random_case(0).replace(optimizer="mirror descent:p=1.75,learning_rate=1e4"),
)

NEAR_A_SOLUTION = (
    trains("W"),
    MIRROR_DESCENT,
    ONE_TOKEN_A_ROW,
    LOCALLY_OPTIMAL_IN_OWN_NORM,
    CLOSE_START,
    SMALL_STEPS,
)
"""Assumptions of statements about training from near a locally optimal direction."""
