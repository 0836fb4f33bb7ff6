"""The first-order solver whose leftovers count as rank."""

import numpy as np
import pytest

from attractor.datasets import unit_tokens
from attractor.geometry import Nuclear
from attractor.margin import MarginProblem, solve
from attractor.papers.transformers_as_svms.data import first_best_tokens
from attractor.papers.transformers_as_svms.first_order import ranks_when_stopped


@pytest.fixture(scope="module")
def problem():
    tokens, head = unit_tokens(5, 5, 10, seeds=8)
    return MarginProblem.from_selection(tokens, first_best_tokens(tokens, head))


def test_high_accuracy_gives_the_certified_rank(problem):
    certified = solve(problem, Nuclear(), tolerance=1e-11).rank
    np.testing.assert_array_equal(ranks_when_stopped(problem, [1e-9])[0], certified)


def test_the_rank_it_seems_to_find_depends_on_where_it_stops(problem):
    loose, middle, tight = ranks_when_stopped(problem, [1e-4, 1e-6, 1e-9]).mean(1)
    assert loose == 5 and tight < middle < loose


def test_accuracies_do_not_disturb_each_other(problem):
    several = ranks_when_stopped(problem, [1e-4, 1e-6])
    for row, accuracy in zip(several, [1e-4, 1e-6], strict=True):
        np.testing.assert_array_equal(ranks_when_stopped(problem, [accuracy])[0], row)


def test_one_instance_alone(problem):
    everything = ranks_when_stopped(problem, [1e-5])[0]
    assert ranks_when_stopped(problem[3:4], [1e-5])[0] == everything[3]


def test_a_single_constraint_has_rank_one(rng):
    problem = MarginProblem(rng.normal(size=(1, 1, 4)), rng.normal(size=(1, 1, 3)))
    assert ranks_when_stopped(problem, [1e-2, 1e-8]).tolist() == [[1], [1]]
