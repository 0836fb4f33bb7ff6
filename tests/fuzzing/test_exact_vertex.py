"""A vertex is called the one solution only where that is so."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attractor.geometry import Lp
from attractor.margin import MarginProblem, solve
from fuzzing.exact_check import Answer, Problem
from fuzzing.exact_vertex import only_vertex
from fuzzing.margin_families import make
from fuzzing.margin_problems import answer_of


def solved(left: object, right: object, p: float) -> tuple[Problem, Answer]:
    left, right = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    problem = MarginProblem(left, right)
    plain = Problem(left, right, np.ones(len(left)), np.zeros(len(left), dtype=bool))
    return plain, answer_of(solve(problem, Lp(p)))


@pytest.mark.parametrize(
    ("p", "left", "right", "one"),
    [
        (1, [[1, 0]], [[2, 1]], True),
        (1, [[1, 0]], [[2, 2]], False),
        (1, [[1, 0], [0, 1]], [[2, 1], [1, 3]], True),
        (math.inf, [[1, 2]], [[3, 4]], True),
        (math.inf, [[1, 0]], [[3, 4]], False),
    ],
)
def test_small_problems(p: float, left: object, right: object, one: bool) -> None:
    assert only_vertex(*solved(left, right, p)) is one


def test_random_problems_agree_with_the_solver() -> None:
    rng = np.random.default_rng(0)
    said = {True: 0, False: 0}
    for p in (1, math.inf):
        for _ in range(20):
            plain, answer = solved(rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), p)
            if answer.status != "optimal":
                continue
            one = only_vertex(plain, answer)
            said[one] += 1
            assert one == (answer.uniqueness == "unique")
    assert said[True] > 10


def test_a_vertex_with_multipliers_smaller_than_the_gap() -> None:
    made = make("columns_of_all_sizes", 202600000273)
    problem = MarginProblem(made.left, made.right, made.bounds, made.equality)
    plain = Problem(made.left, made.right, made.bounds, made.equality)
    assert only_vertex(plain, answer_of(solve(problem, Lp(math.inf))))
