import numpy as np
import pytest
import xarray as xr
from margin_examples import random_problem, stored_tokens

from attractor.geometry import Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.certificates.certificate import certify
from attractor.margin.variants.factorized import solve_factorized
from attractor.support.errors import InvalidInputError, Status


@pytest.fixture(scope="module")
def stored():
    tokens, selection, _ = stored_tokens(slice(0, 2))
    return MarginProblem.from_selection(tokens, selection)


@pytest.fixture(scope="module")
def of_rank_one(stored):
    return solve_factorized(stored[0], 1)


def test_enough_columns_give_the_nuclear_solution(stored):
    solution = solve_factorized(stored, 3, starts=2)
    nuclear = solve(stored, Nuclear())
    assert (solution.status == Status.OPTIMAL).all()
    np.testing.assert_allclose(solution.value, nuclear.value, rtol=1e-9)
    assert solution.geometry == Nuclear()
    assert solution.rank.tolist() == [2, 3]
    assert (np.linalg.matrix_rank(solution.W, rtol=1e-12) <= 3).all()


def test_too_few_columns_give_a_local_solution(stored, of_rank_one):
    solution = of_rank_one
    nuclear = solve(stored[0], Nuclear()).value
    assert solution.status is Status.LOCALLY_OPTIMAL
    # The best of many starts; a trained rank-one direction had 0.873 of the nuclear margin.
    assert 0.873 < nuclear / solution.value < 0.8821
    assert np.linalg.matrix_rank(solution.W, rtol=1e-12) == 1
    assert stored[0].margins(solution.W).min() >= 1 - 1e-12
    assert solution.first_order_residual < 1e-10
    assert solution.dual_value <= nuclear


def test_a_local_solution_has_no_better_neighbor(stored, of_rank_one):
    solution = of_rank_one
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(200):
            K = solution.K + size * rng.normal(size=solution.K.shape)
            Q = solution.Q + size * rng.normal(size=solution.Q.shape)
            margin = stored[0].margins(K @ Q.T).min()
            if margin > 0:
                assert Nuclear().norm(K @ Q.T) / margin >= solution.value * (1 - 1e-9)


def test_first_order_conditions_hold_in_the_factors(stored, of_rank_one):
    solution = of_rank_one
    K, Q, x = solution.K, solution.Q, solution.multipliers
    np.testing.assert_allclose(solution.W, K @ Q.T, atol=1e-15)
    assert np.linalg.norm(K) == pytest.approx(np.linalg.norm(Q))
    # K = c M Q and Q = c M^T K with one c: multipliers are scaled to dual norm one.
    M = stored[0].apply_adjoint(x)
    c = np.vdot(K, K) / np.vdot(K, M @ Q)
    np.testing.assert_allclose(K, c * M @ Q, atol=1e-9)
    np.testing.assert_allclose(Q, c * M.T @ K, atol=1e-9)
    assert (x >= 0).all()
    assert np.abs(x * (stored[0].margins(solution.W) - 1)).max() < 1e-9


def test_two_constraints_of_two_solutions():
    # The nuclear problem has solutions of rank one and of rank two, and value 2.
    solution = solve_factorized(MarginProblem(np.eye(2), np.eye(2)), 1)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(2)
    np.testing.assert_allclose(np.abs(solution.W), 1, atol=1e-6)


def test_no_matrix_of_that_rank():
    # W_11 >= 1, W_22 >= 1 and W_12 = 0: the determinant of W is positive.
    e = np.eye(2)
    problem = MarginProblem(e[[0, 1, 0]], e[[0, 1, 1]], [1, 1, 0], [False, False, True])
    solution = solve_factorized(problem, 1, starts=3)
    assert solution.status is Status.STOPPED_EARLY
    assert np.isnan(solution.W).all() and np.isnan(solution.K).all()
    assert solution.dual_value == pytest.approx(2)
    assert solve_factorized(problem, 2, starts=3).status is Status.OPTIMAL


def test_infeasible_at_any_rank():
    problem = MarginProblem([[1.0, 0.0], [-1.0, 0.0]], [[1.0], [1.0]])
    solution = solve_factorized(problem, 1)
    assert solution.status is Status.INFEASIBLE
    assert solution.farkas_residual < 1e-12
    assert np.isnan(solution.W).all()


@pytest.mark.parametrize("width", [2, 4])
def test_equalities_and_general_bounds(width):
    rng = np.random.default_rng(1)
    a, b, W = rng.normal(size=(6, 4)), rng.normal(size=(6, 4)), np.outer(*rng.normal(size=(2, 4)))
    margins = np.einsum("jd,de,je->j", a, W, b)
    equality = np.arange(6) < 2
    bounds = margins - np.where(equality, 0, rng.exponential(size=6))
    problem = MarginProblem(a, b, bounds, equality)
    solution = solve_factorized(problem, width)
    assert solution.status in (Status.OPTIMAL, Status.LOCALLY_OPTIMAL)
    assert solution.certificate.violation < 1e-9
    assert solution.value >= solve(problem, Nuclear()).value * (1 - 1e-9)
    if width == 4:
        assert solution.status is Status.OPTIMAL


def test_nothing_asked_for_gives_zero():
    solution = solve_factorized(MarginProblem(np.eye(2), np.eye(2), -1.0), 1, starts=2)
    assert solution.status is Status.OPTIMAL
    assert solution.value == 0


@pytest.mark.parametrize("exponent", [-150, 81])
def test_scales(stored, exponent):
    one = stored[0]
    scaled = MarginProblem(one.left * 10.0**exponent, one.right)
    solution = solve_factorized(scaled, 1, starts=1)
    expected = solve_factorized(one, 1, starts=1).value
    assert solution.value * 10.0**exponent == pytest.approx(expected, rel=1e-9)


def test_seeds_repeat_and_the_certificate_is_of_the_matrix():
    problem = random_problem(2, 3, 4, 4, seed=1)
    one, same = (solve_factorized(problem, 1, seed=3, starts=2) for _ in range(2))
    np.testing.assert_array_equal(one.W, same.W)
    again = certify(problem, one.W, one.multipliers, Nuclear())
    np.testing.assert_array_equal(again.gap, one.gap)


@pytest.mark.parametrize(
    ("argument", "value"), [("width", 0), ("width", 1.5), ("starts", 0), ("tolerance", 0.0)]
)
def test_bad_input(argument, value):
    problem, settings = MarginProblem(np.eye(2), np.eye(2)), {"width": 1, argument: value}
    with pytest.raises(InvalidInputError) as error:
        solve_factorized(problem, **settings)
    assert error.value.argument == argument


def test_chosen_instances_keep_their_factors(tmp_path):
    left = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [-1.0, 0.0]]])
    solution = solve_factorized(MarginProblem(left, np.ones((2, 2, 2))), 2, starts=1)
    assert solution.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE]
    one, some = solution[0], solution[:1]
    np.testing.assert_array_equal(one.K, solution.K[0])
    np.testing.assert_array_equal(some.Q, solution.Q[:1])
    assert one.first_order_residual < 1e-6
    for chosen in (solution, one):
        chosen.to_xarray().to_netcdf(tmp_path / "solution.nc", engine="h5netcdf")
        with xr.open_dataset(tmp_path / "solution.nc", engine="h5netcdf") as stored:
            np.testing.assert_array_equal(stored["K"], chosen.K)
            np.testing.assert_allclose(
                xr.dot(stored["K"], stored["Q"], dim="factor"), chosen.W, atol=1e-12
            )


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None])
def test_a_seed_that_is_no_whole_number(seed):
    with pytest.raises(InvalidInputError, match="seed"):
        solve_factorized(MarginProblem(np.eye(2), np.eye(2)), 1, seed=seed)
