"""A geometry and a solver from outside of the library: ``own_geometry.py`` is all that it takes."""

import runpy
from pathlib import Path

import cvxpy
import numpy as np
import pytest
from margin_examples import random_problem

import attractor as at
from attractor.geometry import registry
from attractor.margin import methods
from attractor.support.errors import InvalidInputError


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(registry, "_CLASSES", list(registry._CLASSES))
    monkeypatch.setattr(methods, "_TABLES", dict(methods._TABLES))
    return runpy.run_path(str(Path(__file__).parent / "own_geometry.py"))


def smallest(problem):
    """The least norm, by cvxpy."""
    W = cvxpy.Variable((problem.left.shape[-1], problem.right.shape[-1]))
    margins = cvxpy.sum(cvxpy.multiply(problem.left @ W, problem.right), axis=1)
    norm = cvxpy.max(cvxpy.sum(cvxpy.abs(W), axis=1))
    return cvxpy.Problem(cvxpy.Minimize(norm), [margins >= problem.bounds]).solve("CLARABEL")


def test_the_contract_of_a_norm_with_its_dual_holds(own):
    geometry, draws = own["RowSums"](), np.random.default_rng(0)
    G, W = draws.normal(size=(2, 50, 3, 4))
    D = geometry.steepest_descent_direction(G)
    np.testing.assert_allclose((G * D).sum((-1, -2)), geometry.dual_norm(G))
    np.testing.assert_allclose(geometry.norm(D), 1.0)
    assert ((G * W).sum((-1, -2)) <= geometry.norm(W) * geometry.dual_norm(G)).all()


def test_margin_problems_are_solved_and_certified_in_it_by_its_name(own):
    batch = random_problem(3, 4, 4, 5)
    solution = at.solve(batch, "row_sums")
    for i, status in enumerate(np.atleast_1d(solution.status)):
        if status == at.Status.OPTIMAL:
            assert solution.value[i] == pytest.approx(smallest(batch[i]), rel=1e-6)
    assert (solution.gap[solution.status == at.Status.OPTIMAL] <= 1e-9).all()
    assert (solution.status == at.Status.OPTIMAL).any()


def test_infeasibility_does_not_depend_on_the_norm(own):
    problem = at.MarginProblem([[1.0, 0.0], [-1.0, 0.0]], np.ones((2, 1)))
    assert at.solve(problem, "row_sums").status is at.Status.INFEASIBLE


def test_many_constraints_are_left_to_its_methods(own):
    draws = np.random.default_rng(0)
    left = draws.normal((3, 0, 0), size=(2100, 3))
    infeasible = at.MarginProblem(left, np.ones((2100, 1)))
    assert at.solve(infeasible, "row_sums").status is at.Status.INFEASIBLE
    problem = at.MarginProblem(left[left[:, 0] > 1], np.ones(((left[:, 0] > 1).sum(), 1)))
    assert problem.bounds.size > 2000
    solution = at.solve(problem, "row_sums")
    assert solution.status is at.Status.OPTIMAL
    assert solution.value == pytest.approx(smallest(problem), rel=1e-6)


def test_methods_are_passed_in_place_of_those_known(own):
    problem, asked = random_problem(3, 4, 4, 5)[0], []

    def spying(task):
        asked.append(task.geometry)
        return own["by_linear_programming"](task)

    passed = at.solve(problem, own["RowSums"](), methods=[spying])
    assert asked == [own["RowSums"]()]
    assert passed.value == at.solve(problem, "row_sums").value


def test_a_method_that_is_wrong_proves_nothing(own):
    def guessing(task):
        return np.ones_like(task.W), np.ones_like(task.multipliers)

    problem = random_problem(3, 4, 4, 5)[0]
    assert at.solve(problem, "row_sums", methods=[guessing]).status is at.Status.STOPPED_EARLY


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "methods: it has 0 items"),
        ([3], r"methods\[0\]: 3 is not Callable"),
        (print, "methods: .* is no sequence"),
        ([lambda task: (np.ones((2, 2)), np.ones(3))], "methods: .* returned arrays"),
    ],
)
def test_what_is_no_method_is_refused(own, given, message):
    with pytest.raises(InvalidInputError, match=message):
        at.solve(random_problem(1, 4, 4, 5)[0], "row_sums", methods=given)
