"""The largest margin in the balls of l_1 and l_inf by interior points."""

import numpy as np
import pytest
from scipy.optimize import linprog

from attractor.geometry import Lp
from attractor.margin import MarginProblem, solve
from attractor.margin.linear.largest_margin import solve_by_largest_margin
from attractor.support.errors import Status


def random_set(seed):
    """Forty constraints on a matrix of 3 x 4 that a random matrix meets, with bounds of 1 to 3."""
    rng = np.random.default_rng(seed)
    left, right, target = (rng.normal(size=shape) for shape in ((40, 3), (40, 4), (3, 4)))
    left *= np.sign(np.einsum("md,de,me->m", left, target, right))[:, None]
    return left, right, rng.uniform(1, 3, size=40)


@pytest.mark.parametrize("p", [1, np.inf])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_simplex_method(p, seed):
    left, right, bounds = random_set(seed)
    problem = MarginProblem(left, right, bounds)
    solution = solve(problem, Lp(p), methods=[solve_by_largest_margin])
    assert solution.status is Status.OPTIMAL
    rows = np.einsum("md,me->mde", left, right).reshape(40, -1)
    above = np.hstack([-rows, bounds[:, None]])  # the largest margin of a matrix in the ball
    costs = np.append(np.zeros(12), -1.0)
    if p == 1:
        above = np.hstack([-rows, rows, bounds[:, None]])
        above = np.vstack([above, np.append(np.ones(24), 0.0)])
        found = linprog(np.append(np.zeros(24), -1.0), above, np.append(np.zeros(40), 1.0))
    else:
        limits = [(-1, 1)] * 12 + [(None, None)]
        found = linprog(costs, above, np.zeros(40), bounds=limits)
    assert solution.value == pytest.approx(-1 / found.fun, rel=1e-8)


@pytest.mark.parametrize("p", [1, np.inf])
def test_copies_of_constraints_change_nothing(p):
    left, right, bounds = random_set(0)
    once = solve(MarginProblem(left, right, bounds), Lp(p))
    thrice = MarginProblem(*(np.concatenate([array] * 3) for array in (left, right, bounds)))
    solution = solve(thrice, Lp(p), methods=[solve_by_largest_margin])
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(once.value, rel=1e-8)


@pytest.mark.parametrize("p", [1, np.inf])
def test_there_is_no_answer_where_the_method_does_not_apply(p):
    left, right, bounds = random_set(0)
    left[1], right[1] = -left[0], right[0]
    for problem in (
        MarginProblem(left, right, bounds),  # a contradiction
        MarginProblem(left[2:], right[2:], bounds[2:] - 2.0),
        MarginProblem(left[2:], right[2:], bounds[2:], np.arange(38) == 0),
    ):
        calls = []

        def method(task, calls=calls):
            calls.append(solve_by_largest_margin(task))
            return calls[-1]

        solve(problem, Lp(p), methods=[method])
        assert all(np.isnan(W).all() and not x.any() for W, x in calls)
