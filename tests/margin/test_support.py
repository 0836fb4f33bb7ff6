"""Which constraints count as being at their bound."""

import numpy as np
import pytest
from margin_examples import random_problem, stored_tokens

from attractor.geometry import Frobenius
from attractor.margin import MarginProblem, solve
from attractor.margin.certificates.certificate import certify


def central_pair(problem, distance):
    """A point of the central path of the dual: every multiplier times its slack is ``distance``."""
    gram = problem.gram()
    x, weight = np.full(len(gram), len(gram) / gram.sum()), 1.0
    while True:
        for _ in range(30):
            gradient = gram @ x - 1 - weight / x
            step = np.linalg.solve(gram + np.diag(weight / x**2), -gradient)
            x = x + min(1.0, 0.9 / np.max(-step / x, initial=0.9)) * step
        if weight == distance:
            return problem.apply_adjoint(x), x
        weight = max(weight / 4, distance)


def support_of(problem, W, x):
    found = certify(problem.batched(), W[None], x[None], Frobenius())
    return found.support[0], found.gap[0]


@pytest.mark.parametrize("distance", [1e-8, 1e-10, 1e-12])
def test_interior_points_have_the_support_of_the_solution(distance):
    tokens, selection, _ = stored_tokens(slice(0, 12))
    exact = solve(MarginProblem.from_selection(tokens, selection))
    beyond_the_margin_rule = 0
    for one in exact:
        W, x = central_pair(one.problem, distance)
        assert (x > 0).all()
        support, gap = support_of(one.problem, W, x)
        np.testing.assert_array_equal(support, one.support)
        slack = one.problem.margins(W) - 1
        assert slack[support].max() <= np.sqrt(gap)
        beyond_the_margin_rule += (slack[support] > 1e-6).sum()
    assert (beyond_the_margin_rule > 0) == (distance == 1e-8)


def test_tiny_multipliers_do_not_make_a_constraint_a_support():
    problem = random_problem(1, 4, 4, 5)[0]
    solution = solve(problem)
    noisy = solution.multipliers + 1e-10
    support, _ = support_of(problem, solution.W, noisy)
    np.testing.assert_array_equal(support, solution.support)
    assert not support.all()


def test_a_constraint_at_its_bound_without_a_multiplier_counts():
    # The first constraint alone decides; the second holds with equality at its solution.
    problem = MarginProblem([[1.0, 0.0], [1.0, 1.0], [1.0, -0.5]], np.ones((3, 1)), [1, 1, 0.5])
    solution = solve(problem)
    assert solution.multipliers[1] == 0
    assert solution.support.tolist() == [True, True, False]


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_support_is_free_of_units(scale):
    problem = random_problem(1, 4, 4, 5, seed=1)[0]
    plain = solve(problem).support
    larger = MarginProblem(problem.left * scale, problem.right, problem.bounds)
    np.testing.assert_array_equal(solve(larger).support, plain)
    asked = MarginProblem(problem.left, problem.right, problem.bounds * scale)
    np.testing.assert_array_equal(solve(asked).support, plain)


def test_bounds_that_are_zero_or_negative():
    left = [[1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0]]
    solution = solve(MarginProblem(left, np.ones((4, 1)), [1.0, 0.0, -2.0, -1.0]))
    np.testing.assert_allclose(solution.W.ravel(), [1, 0], atol=1e-12)
    assert solution.support.tolist() == [True, True, False, False]


def test_a_contradiction_has_no_support():
    solution = solve(MarginProblem([[1.0], [-1.0]], [[1.0], [1.0]]))
    assert not solution.support.any()
