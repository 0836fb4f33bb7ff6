"""Directions of training, and wrong ones that are near."""

import numpy as np
import pytest

import attractor as at
from attractor.geometry import Lp
from attractor.margin import MarginProblem, solve
from attractor.papers import Case
from attractor.papers.max_margin.claims.objective import runner_up
from attractor.papers.max_margin.data import one_sequence, three_sequences
from attractor.papers.measurements.directions import (
    cosines,
    distance_from,
    random_starts,
    second_half,
    step_length,
    steps_to_converge,
    trained,
)
from attractor.papers.measurements.near_misses import drop_largest_multiplier, turned_past


def test_cosines_of_matrices():
    matrices = np.array([[[2.0, 0], [0, 0]], [[1, 1], [1, 1]], [[0, 0], [0, 0]]])
    found = cosines(matrices, np.array([[3.0, 0], [0, 0]]))
    np.testing.assert_allclose(found, [1, 0.5, np.nan])


@pytest.mark.parametrize("scale", [2.0**-20, 0.5, 1.0, 2.0**13])
def test_steps_follow_the_size_of_the_keys(scale):
    case = one_sequence(equal_scores=True)
    tokens = case.tokens
    scaled = case.replace(
        tokens=at.Tokens(scale * tokens.keys, tokens.queries, tokens.labels, values=tokens.values)
    )
    run, plain = (trained(each, 0, steps=300, initial=np.zeros(2)) for each in (scaled, case))
    if scale in (0.5, 1.0):
        assert step_length(scaled) == 0.1
    else:
        np.testing.assert_array_equal(scale * run.W(), plain.W())  # powers of two keep all digits
        assert steps_to_converge(scaled, 0.0) == steps_to_converge(case, 0.0) > 2000


def test_starts_have_the_lengths_asked_for_unless_the_case_has_one():
    case = three_sequences()
    starts = random_starts(case, 3)["p"]
    assert starts.shape == (1, 9, 2)
    np.testing.assert_allclose(np.linalg.norm(starts[0], axis=-1), np.repeat([0.1, 5, 30], 3))
    assert random_starts(case.replace(initial=np.ones(2)), 3) is None
    factors = random_starts(case.replace(parameterization="KQ"), 3, lengths=(2.0,), each=2)
    assert {name: array.shape for name, array in factors.items()} == {
        "K": (1, 2, 2, 1), "Q": (1, 2, 1, 1),
    } or set(factors) == {"K", "Q"}  # fmt: skip


def test_a_case_says_how_it_is_trained():
    case = one_sequence(equal_scores=True).replace(
        initial=np.array([1.0, 2.0]), optimizer="gd:learning_rate=0.5", steps=7
    )
    run = trained(case, 0, steps=300, initial=np.zeros((1, 4, 2)), seeds=4)
    assert run.optimizer_name == "gradient descent" and run.steps[-1] == 7
    np.testing.assert_array_equal(run.W(0)[0, :, :, 0], [[1.0, 2.0]])
    assert trained(case, 0) is run  # work is shared
    assert trained(case, 0, record=[7]) is not run


def test_the_second_half_forgets_the_start():
    case = one_sequence(equal_scores=True)
    run = trained(case, 0, steps=2000, initial=np.array([20.0, -5.0]))
    direction = case.solution().W
    measured = distance_from(run, direction)
    assert measured.value < 1e-9 < 1e-6 < measured.details["1 - cos of W itself"]
    np.testing.assert_array_equal(measured.details["start"], [[20.0], [-5.0]])
    assert np.linalg.norm(second_half(run)) >= 0.5 * np.linalg.norm(run.W() - run.W(0))


def test_a_run_that_goes_nowhere_has_no_direction():
    case = Case.from_scores([[[1.0, 0], [1.0, 0]], [[1.0, 0], [0, 0]]], [[1.0, 0], [1, 1]])
    run = trained(case, 0, steps=300, initial=np.array([1.0, 1.0]))
    assert np.isnan(distance_from(run, np.ones((2, 1))).value)


@pytest.mark.parametrize("geometry", [None, Lp(3)], ids=str)
def test_one_token_fewer_breaks_what_the_solution_keeps(geometry):
    case = three_sequences()
    solution = case.solution() if geometry is None else case.solution(geometry)
    heaviest = int(solution.multipliers.argmax())
    fewer = drop_largest_multiplier(solution)
    margins = solution.problem.margins(fewer)
    assert margins[heaviest] < 1 - 1e-3
    assert np.delete(margins, heaviest).min() >= 1 - 1e-8
    assert solution.geometry.norm(fewer) < solution.value
    turned = turned_past(solution)
    short = solution.problem.margins(turned)[heaviest]
    assert -0.1 < short / np.linalg.norm(solution.problem.left[heaviest]) < 0


@pytest.mark.parametrize("constraint", [[[3.0, 4.0, 0.0]], [[2.0]], [[-1.0, 0.0]]])
def test_a_single_constraint_has_a_near_miss_too(constraint):
    solution = solve(MarginProblem(np.array(constraint), np.ones((1, 1))))
    wrong = drop_largest_multiplier(solution)
    assert np.isfinite(wrong).all() and wrong.any()
    assert solution.problem.margins(wrong)[0] < 0


def test_the_runner_up_gives_up_the_least():
    case = Case.from_scores(np.zeros((2, 3, 1)), [[3.0, 1, 2.5], [0.0, 5, 4]])
    assert runner_up(case).index.tolist() == [2, 1]
    assert runner_up(Case.from_scores(np.zeros((2, 2, 1)), [[1.0, 1], [2, 2]])) is None
