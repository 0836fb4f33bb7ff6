"""Whether solutions are unique, against the range of random functionals over all solutions."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from margin_examples import random_problem, stored_tokens

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve

SUM, LARGEST = Lp(1), Lp(np.inf)
FOUR = [SUM, LARGEST, Nuclear(), Spectral()]


def tied_problem(seed):
    """Few small integers: with and without ties, rows and columns that nothing asks for."""
    rng = np.random.default_rng(seed)
    d, e, m = rng.integers(1, 4, size=3)
    left, right = rng.integers(-2, 3, size=(m, d)), rng.integers(-2, 3, size=(m, e))
    target = rng.integers(-2, 3, size=(d, e))
    margins = np.einsum("jd,de,je->j", left, target, right)
    left = np.where(margins[:, None] < 0, -left, left).astype(float)
    equality = rng.random(m) < 0.2
    loosened = np.minimum(np.abs(margins), rng.integers(0, 3, size=m))
    bounds = np.where(equality, np.abs(margins), loosened)
    return MarginProblem(left, right.astype(float), bounds, equality)


def width(problem, geometry, value, functional):
    """How far a functional of solutions ranges, by linear programs over all of them."""
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(len(problem.left), -1)
    m, entries = rows.shape
    identity, empty = np.eye(entries), np.zeros((m, entries))
    cost = np.append(functional.ravel(), np.zeros(entries))
    total = np.ones((1, entries)) if geometry == SUM else identity
    held = problem.equality
    ends = []
    for sign in (1, -1):
        found = scipy.optimize.linprog(
            sign * cost,
            A_ub=np.block(
                [
                    [identity, -identity],
                    [-identity, -identity],
                    [np.zeros((len(total), entries)), total],
                    [-rows[~held], empty[~held]],
                ]
            ),
            b_ub=np.concatenate(
                [
                    np.zeros(2 * entries),
                    np.full(len(total), value * (1 + 1e-9)),
                    -problem.bounds[~held],
                ]
            ),
            A_eq=np.hstack([rows[held], empty[held]]),
            b_eq=problem.bounds[held],
            bounds=(None, None),
            options={"primal_feasibility_tolerance": 1e-10},
        )
        ends.append(found.fun)
    return -(ends[0] + ends[1])


def assert_another_solution(solution):
    """That ``other_solution`` is one, and not the one in hand."""
    problem, other = solution.problem, solution.other_solution
    assert solution.geometry.norm(other) <= solution.norm * (1 + 2e-9)
    short = problem.bounds - problem.margins(other)
    short = np.where(problem.equality, np.abs(short), short)
    sizes = np.linalg.norm(problem.left, axis=-1) * np.linalg.norm(problem.right, axis=-1)
    assert (short <= 2e-9 * (sizes * solution.norm)).all()
    assert np.linalg.norm(other - solution.W) >= 1e-3 * np.linalg.norm(solution.W)


@pytest.mark.parametrize("geometry", [SUM, LARGEST], ids=lambda geometry: geometry.name)
@given(st.integers(0, 10**6))
def test_answers_agree_with_all_solutions_of_the_linear_program(geometry, seed):
    problem = tied_problem(seed)
    solution = solve(problem, geometry)
    functional = np.random.default_rng(seed).normal(size=problem.shape)
    wide = width(problem, geometry, solution.norm, functional) > 1e-5 * max(solution.norm, 1e-3)
    if solution.uniqueness == "not unique":
        assert_another_solution(solution)
    assert solution.uniqueness == ("not unique" if wide else "unique")


def test_two_entries_leave_a_nuclear_solution_free():
    solution = solve(MarginProblem(np.eye(2), np.eye(2)), Nuclear())
    assert solution.uniqueness == "not unique"
    assert_another_solution(solution)
    assert "one of many with this norm" in repr(solution)


def test_an_entry_that_nothing_asks_for_is_free_in_the_largest_entry_norm():
    solution = solve(MarginProblem([[1.0, 2.0, 0.0]], [[1.0, 1.0]]), LARGEST)
    assert solution.uniqueness == "not unique"
    assert_another_solution(solution)
    difference = solution.other_solution - solution.W
    np.testing.assert_allclose(difference[:2], 0, atol=1e-9)


def test_equal_entries_tie_in_the_sum_norm():
    assert solve(MarginProblem([[1.0, 2.0]], [[1.0, 1.0]]), SUM).uniqueness == "not unique"
    solution = solve(MarginProblem([[1.0, 2.0]], [[1.0, 1.5]]), SUM)
    assert solution.uniqueness == "unique"
    assert "one of many" not in repr(solution)
    assert np.isnan(solution.other_solution).all()


def test_what_the_spans_leave_out_is_free_in_the_spectral_norm():
    solution = solve(MarginProblem([[1.0, 0.0, 0.0]], [[1.0, 0.0]]), Spectral())
    assert solution.uniqueness == "not unique"
    assert_another_solution(solution)
    full = solve(MarginProblem(np.eye(3), np.eye(3)), Spectral())
    assert full.uniqueness == "unique"


@pytest.mark.parametrize("geometry", [SUM, Nuclear()], ids=lambda geometry: geometry.name)
def test_generic_problems_have_one_solution(geometry):
    tokens, selection, _ = stored_tokens(slice(0, 20))
    solution = solve(MarginProblem.from_selection(tokens, selection), geometry)
    assert set(solution.uniqueness) == {"unique"}


@pytest.mark.parametrize("geometry", [Nuclear(), Spectral()], ids=lambda geometry: geometry.name)
def test_answers_agree_with_all_solutions_of_the_cone_program(geometry):
    known = 0
    for seed in range(12):
        problem = tied_problem(seed)
        solution = solve(problem, geometry)
        if solution.uniqueness == "not known" or solution.norm == 0:
            continue
        known += 1
        W = cp.Variable(problem.shape)
        rows = problem.left[:, :, None] * problem.right[:, None, :]
        margins = rows.reshape(len(rows), -1) @ cp.vec(W, order="C")
        size = cp.normNuc(W) if geometry == Nuclear() else cp.sigma_max(W)
        constraints = [size <= solution.norm * (1 + 1e-7), margins >= problem.bounds - 1e-7]
        if problem.equality.any():
            held = np.flatnonzero(problem.equality)
            constraints.append(margins[held] <= problem.bounds[held] + 1e-7)
        functional = np.random.default_rng(seed).normal(size=problem.shape)
        model = cp.Problem(
            cp.Maximize(cp.sum(cp.multiply(functional, W - solution.W))), constraints
        )
        opposite = cp.Problem(cp.Minimize(model.objective.args[0]), constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            range_ = model.solve(solver=cp.CLARABEL) - opposite.solve(solver=cp.CLARABEL)
        wide = range_ > 0.02 * solution.norm  # 1e-7 leaves a curved norm room for its square root
        assert solution.uniqueness == ("not unique" if wide else "unique"), seed
        if wide:
            assert_another_solution(solution)
    assert known >= 6


def test_strictly_convex_norms_have_one_solution():
    problem = MarginProblem(np.eye(2), np.eye(2))
    for geometry in (Frobenius(), Lp(1.5), Schatten(3)):
        assert solve(problem, geometry).uniqueness == "unique"


@pytest.mark.parametrize(
    "geometry", [*FOUR, Frobenius(), Lp(3)], ids=lambda geometry: geometry.name
)
def test_zero_is_the_only_matrix_of_norm_zero_and_no_matrix_is_not_known_to_be_alone(geometry):
    assert solve(MarginProblem([[1.0]], [[1.0]], 0.0), geometry).uniqueness == "unique"
    infeasible = solve(MarginProblem([[1.0], [-1.0]], [[1.0], [1.0]]), geometry)
    assert infeasible.uniqueness == "not known"


def test_batches_answer_one_by_one():
    left = np.array([[[1.0, 2.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]])
    present = np.array([[True, False], [True, True]])
    solution = solve(MarginProblem(left, np.ones((2, 2, 2)), present=present), SUM)
    assert list(solution.uniqueness) == [solution[0].uniqueness, solution[1].uniqueness]
    assert solution.other_solution.shape == (2, 2, 2)
    np.testing.assert_array_equal(solution.other_solution[1], solution[1].other_solution)


@pytest.mark.parametrize("geometry", FOUR, ids=lambda geometry: geometry.name)
def test_answers_do_not_depend_on_units(geometry):
    problem = random_problem(3, 2, 3, 4, seed=4)
    plain = solve(problem, geometry).uniqueness
    other = solve(MarginProblem(problem.left * 1e60, problem.right, 1e-30), geometry).uniqueness
    np.testing.assert_array_equal(plain, other)
