import numpy as np
import pytest
from scipy.optimize import minimize

from attractor.geometry import Nuclear
from attractor.margin import MarginProblem, solve
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.figures.key_query import factor_residual


@pytest.fixture(scope="module")
def problem():
    case = random_case(2)
    return MarginProblem.from_selection(case.tokens, case.optimal)


def test_balanced_factors_of_the_nuclear_solution_are_stationary_for_p_2(problem):
    U, s, V = np.linalg.svd(solve(problem, Nuclear()).W)
    K, Q = U * np.sqrt(s), V.T * np.sqrt(s)
    assert factor_residual(K, Q, problem, 2.0) < 1e-5
    assert factor_residual(2 * K, Q / 2, problem, 2.0) > 0.1  # not balanced
    assert factor_residual(K, Q, problem, 3.0) > 0.1


@pytest.mark.parametrize("p", [1.75, 3.0])
def test_a_local_minimum_found_by_another_solver_is_stationary(p, problem, rng):
    def split(theta):
        return theta[:16].reshape(4, 4), theta[16:].reshape(4, 4)

    def margins(theta):
        K, Q = split(theta)
        return problem.margins(K @ Q.T) - 1

    def slopes(theta):
        K, Q = split(theta)
        of_K = np.einsum("jd,jm->jdm", problem.left, problem.right @ Q)
        of_Q = np.einsum("je,jm->jem", problem.right, problem.left @ K)
        return np.concatenate([of_K.reshape(-1, 16), of_Q.reshape(-1, 16)], axis=1)

    U, s, V = np.linalg.svd(solve(problem, Nuclear()).W)
    start = np.concatenate([(U * np.sqrt(s)).ravel(), (V.T * np.sqrt(s)).ravel()])
    start += 0.05 * rng.normal(size=32)
    found = minimize(
        lambda theta: (np.abs(theta) ** p).sum() / p,
        start,
        jac=lambda theta: np.sign(theta) * np.abs(theta) ** (p - 1),
        constraints={"type": "ineq", "fun": margins, "jac": slopes},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert margins(found.x).min() > -1e-8
    assert factor_residual(*split(found.x), problem, p) < 1e-3
    assert factor_residual(*split(start), problem, p) > 0.05


def test_there_is_none_without_a_margin(problem):
    assert np.isnan(factor_residual(np.zeros((4, 4)), np.zeros((4, 4)), problem, 2.0))
