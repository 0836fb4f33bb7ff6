import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from margin_examples import random_problem, thin_problem

from attractor.margin import MarginProblem, solve
from attractor.margin.frobenius.least_distance import Instance, _vanishes
from attractor.margin.selection import Selection
from attractor.support.errors import DuplicateTokensWarning, Status
from attractor.tokens import Tokens


def check(solution):
    """The multipliers are a contradiction, checked here from the constraints alone."""
    problem, x = solution.problem, solution.multipliers
    assert solution.status is Status.INFEASIBLE
    assert np.isnan(solution.W).all()
    assert (x[~problem.equality] >= 0).all()
    assert x @ problem.bounds == pytest.approx(1)
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(len(x), -1)
    sizes = np.abs(x) * np.linalg.norm(rows, axis=1)
    assert np.linalg.norm(x @ rows) <= 4 * len(x) * np.finfo(float).eps * sizes.sum()
    assert solution.conflict.tolist() == np.flatnonzero(x).tolist()
    assert solution.farkas_residual <= 1e-12
    with np.errstate(divide="ignore"):
        bound = 1 / np.float64(solution.farkas_residual)
    assert solution.norm_lower_bound == pytest.approx(bound)


def test_a_copy_of_the_selected_token_is_a_conflict_of_one():
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(2, 4, 3))
    keys[1, 2] = keys[1, 0]
    tokens = Tokens(keys, rng.normal(size=(2, 3)))
    with pytest.warns(DuplicateTokensWarning):
        problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0]))
    solution = solve(problem)
    check(solution)
    assert [problem.token[j] for j in solution.conflict] == [2]
    assert [problem.sequence[j] for j in solution.conflict] == [1]


def test_a_query_of_zero_is_a_conflict_of_one():
    rng = np.random.default_rng(0)
    tokens = Tokens(rng.normal(size=(2, 4, 3)), np.stack([np.zeros(3), np.ones(3)]))
    with pytest.warns(DuplicateTokensWarning, match="zero"):
        problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0]))
    solution = solve(problem)
    check(solution)
    assert solution.conflict.size == 1


def test_one_dimension_and_opposite_tokens():
    # In one dimension a middle token can never win.
    tokens = Tokens(np.array([[[-1.0], [0.1], [1.0]]]), np.ones((1, 1)))
    solution = solve(MarginProblem.from_selection(tokens, Selection.from_index(tokens, [1])))
    check(solution)
    assert solution.conflict.size == 2


def test_data_in_one_dimension_is_never_feasible():
    with pytest.warns(DuplicateTokensWarning, match="more"):
        problem = random_problem(100, 5, 5, 1)
    solution = solve(problem)
    # Unit tokens in one dimension are +1 or -1; five of them hold a copy of the selected one.
    assert (solution.status == Status.INFEASIBLE).all()
    for i in range(100):
        check(solution[i])


def test_a_cycle_of_preferences():
    tokens = Tokens(np.stack([np.eye(3), np.eye(3)]), np.stack([np.eye(3)[2]] * 2))
    solution = solve(MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 1])))
    check(solution)
    pairs = {
        (int(solution.problem.sequence[j]), int(solution.problem.token[j]))
        for j in solution.conflict
    }
    assert pairs == {(0, 1), (1, 0)}


def test_contradicting_equalities():
    a = np.array([[1.0, 0], [0, 1], [1, 1]])
    solution = solve(MarginProblem(a, np.ones((3, 1)), [1.0, 1.0, 3.0], True))
    check(solution)
    assert solve(MarginProblem(a, np.ones((3, 1)), [1.0, 1.0, 2.0], True)).status is Status.OPTIMAL
    nothing = solve(MarginProblem(np.zeros((1, 2)), np.ones((1, 1)), -2.0, True))
    check(nothing)
    assert nothing.multipliers.tolist() == [-0.5]


def test_an_inequality_against_equalities():
    a = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    equality = np.array([True, True, False, False])
    solution = solve(MarginProblem(a, np.ones((4, 1)), [0.0, 0.0, 1.0, 1.0], equality))
    check(solution)
    assert solution.conflict.tolist() == [0, 1, 2]


def test_counts_of_feasible_data_sets():
    for (n, T, d), seed in (((5, 5, 2), 0), ((10, 5, 3), 1), ((15, 5, 4), 2)):
        solution = solve(random_problem(100, n, T, d, seed))
        states = set(solution.status.tolist())
        assert states == {Status.OPTIMAL, Status.INFEASIBLE}
        for i in range(100):
            if solution.status[i] is Status.INFEASIBLE:
                check(solution[i])
            else:
                margins = solution.problem[i].margins(solution.W[i])
                assert margins.min() >= 1 - 1e-12


@given(st.integers(0, 2**20), st.sampled_from([1e-150, 1.0, 1e150]))
def test_conflicts_are_small_and_irreducible(seed, scale):
    problem = random_problem(1, 6, 4, 2, seed)[0]
    problem = MarginProblem(problem.left * scale, problem.right)
    solution = solve(problem)
    if solution.status is Status.INFEASIBLE:
        check(MarginSolution(solution, scale))
        assert solution.conflict.size <= 2 * 2 + 1
        for leave in solution.conflict:
            rest = np.setdiff1d(solution.conflict, leave)
            without = solve(MarginProblem(problem.left[rest], problem.right[rest]))
            assert without.status is Status.OPTIMAL


class MarginSolution:
    """A solution with keys brought back to size one, so that the check is free of scale."""

    def __init__(self, solution, scale):
        self.solution = solution
        problem = solution.problem
        self.problem = MarginProblem(problem.left / scale, problem.right, problem.bounds)
        self.farkas_residual = solution.farkas_residual / scale
        self.norm_lower_bound = solution.norm_lower_bound * scale

    def __getattr__(self, name):
        return getattr(self.solution, name)


def test_between_feasible_and_infeasible_the_bound_is_honest():
    for margin in (1e-8, 1e-10, 1e-12):
        solution = solve(thin_problem(margin, 3))
        assert solution.status is not Status.INFEASIBLE
        # The direction that all rows share has margin at least ``margin`` and norm one.
        assert solution.norm_lower_bound <= 1 / margin
        assert solution.norm_lower_bound >= 0.4 / margin


def test_an_infeasible_instance_harms_no_other():
    rng = np.random.default_rng(0)
    left = rng.normal(size=(3, 2, 4))
    left[1, 1] = -left[1, 0]
    solution = solve(MarginProblem(left, np.ones((3, 2, 1))))
    assert [s.value for s in solution.status] == ["optimal", "infeasible", "optimal"]
    assert [c.tolist() for c in solution.conflict] == [[], [0, 1], []]
    assert np.isnan(solution.norm).tolist() == [False, True, False]


def test_near_copies_are_feasible():
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(1, 3, 4))
    keys[0, 1] = keys[0, 0] * (1 + 1e-9)
    tokens = Tokens(keys, rng.normal(size=(1, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve(MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0])))
    assert solution.status is Status.OPTIMAL
    assert solution.norm > 1e6


@pytest.mark.parametrize(
    ("slopes", "bounds", "contradict"),
    [([1, -1], [1, 0], True), ([1, 1], [1, 1], False), ([1, -1], [1, -1], False)],
)
def test_a_contradiction_cancels_the_constraints_and_not_the_bounds(slopes, bounds, contradict):
    """w >= 1 against -w >= 0; twice w >= 1; and w = 1 from both sides."""
    left, right = np.array(slopes, float)[:, None], np.ones((2, 1))
    signs, slots = np.ones(2, bool), np.arange(2)
    instance = Instance(left, right, np.array(bounds, float), signs, left, slots)
    assert _vanishes(instance, np.ones(2)) == contradict
