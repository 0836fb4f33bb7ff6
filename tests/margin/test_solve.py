import numpy as np
import pytest
from hypothesis import given, strategies as st
from margin_examples import (
    cvxpy_solution,
    random_problem,
    stored_tokens,
    thin_problem,
    unit,
)

from attractor.geometry import Frobenius
from attractor.margin import MarginProblem, solve
from attractor.margin.frobenius import active_sets, least_distance
from attractor.support.errors import InvalidInputError, Status

seeds = st.integers(0, 2**20)


def test_golden_values():
    tokens, selection, _ = stored_tokens(slice(0, 2))
    solution = solve(MarginProblem.from_selection(tokens, selection))
    assert selection.index.tolist() == [[7, 4, 6, 1, 3, 2], [3, 2, 6, 2, 6, 2]]
    np.testing.assert_allclose(solution.norm, [2.9073738904, 2.6601569144], rtol=1e-7)
    assert (solution.gap < 1e-12).all()


def test_two_orthogonal_constraints_give_the_identity():
    solution = solve(MarginProblem(np.eye(2), np.eye(2)))
    np.testing.assert_allclose(solution.W, np.eye(2), atol=1e-15)
    assert solution.value == pytest.approx(np.sqrt(2), rel=1e-14)
    assert solution.rank == 2


def test_one_constraint():
    a, b = np.array([[3.0, 4.0]]), np.array([[0.0, 2.0, 0.0]])
    solution = solve(MarginProblem(a, b))
    np.testing.assert_allclose(solution.W, a.T @ b / 100, atol=1e-16)
    assert solution.status is Status.OPTIMAL
    assert solution.margin == pytest.approx(1)
    assert solution.rank == 1
    assert solution.multipliers == pytest.approx([0.1])


def test_one_sequence_solves_the_vector_problem():
    # With one query W = w z^T / ||z||^2, where w is the hard-margin direction of the tokens.
    rng = np.random.default_rng(0)
    a, z = rng.normal(size=(5, 8)), rng.normal(size=8)
    matrix = solve(MarginProblem(a, np.tile(z, (5, 1))))
    vector = solve(MarginProblem(a, np.ones((5, 1))))
    np.testing.assert_allclose(matrix.W, vector.W @ z[None] / (z @ z), atol=1e-14)
    assert matrix.rank == 1


@pytest.mark.parametrize("problem", ["none", "slack", "zero bounds"])
def test_nothing_to_do_gives_zero(problem):
    a = np.eye(3)[: 0 if problem == "none" else 3]
    bounds = {"none": 1.0, "slack": -1.0, "zero bounds": 0.0}[problem]
    solution = solve(MarginProblem(a, a, bounds))
    assert solution.status is Status.OPTIMAL
    np.testing.assert_array_equal(solution.W, np.zeros((3, 3)))
    assert (solution.value, solution.gap, solution.rank) == (0, 0, 0)


@pytest.mark.parametrize("shape", [(6, 8, 10), (5, 5, 3), (10, 10, 6), (3, 2, 2)])
def test_agrees_with_an_interior_point_solver(shape):
    problem = random_problem(3, *shape, seed=4)
    for one, solution in zip(problem, solve(problem).W, strict=True):
        W, value, status = cvxpy_solution(one)
        if status == "infeasible":
            assert np.isnan(solution).all()
            continue
        assert np.linalg.norm(solution) == pytest.approx(value, rel=1e-7)
        np.testing.assert_allclose(solution, W, atol=1e-5 * value)


@pytest.mark.parametrize("d", [3, 8])
def test_general_bounds_and_equalities_agree_with_an_interior_point_solver(d):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(7, d)), rng.normal(size=(7, 2))
        target = rng.normal(size=(d, 2))
        bounds = np.einsum("jd,de,je->j", a, target, b)
        equality = rng.random(7) < 0.3
        bounds = np.where(equality, bounds, bounds - rng.random(7))
        problem = MarginProblem(a, b, bounds, equality)
        solution = solve(problem)
        W, value, _ = cvxpy_solution(problem)
        assert solution.status is Status.OPTIMAL
        assert solution.norm == pytest.approx(value, rel=1e-7, abs=1e-8)
        np.testing.assert_allclose(solution.W, W, atol=1e-5)
        assert solution.equality_residual < 1e-13


def test_equalities_alone_give_the_least_norm_solution():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    rows = (a[:, :, None] * b[:, None, :]).reshape(4, 9)
    expected = np.linalg.pinv(rows) @ c
    solution = solve(MarginProblem(a, b, c, True))
    np.testing.assert_allclose(solution.W.ravel(), expected, atol=1e-13)
    assert solution.status is Status.OPTIMAL
    # The same with every equality given three times over, once with the other sign.
    a, b, c = np.vstack([a, a, -a]), np.vstack([b, b, b]), np.concatenate([c, c, -c])
    redundant = solve(MarginProblem(a, b, c, True))
    np.testing.assert_allclose(redundant.W.ravel(), expected, atol=1e-13)
    assert redundant.status is Status.OPTIMAL


def test_homogeneous_equalities_beside_inequalities():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(10, 5)), rng.normal(size=(10, 5))
        equality = np.arange(10) < 3
        problem = MarginProblem(a, b, np.where(equality, 0.0, 1.0), equality)
        solution = solve(problem)
        assert solution.status is Status.OPTIMAL
        assert solution.equality_residual < 1e-13
        assert solution.norm == pytest.approx(cvxpy_solution(problem)[1], rel=1e-7)


@given(seeds)
def test_order_of_constraints_and_instances_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(4, 4, 4, 4, seed)
    instances, slots = rng.permutation(4), rng.permutation(12)
    turned = MarginProblem(problem.left[instances][:, slots], problem.right[instances][:, slots])
    one, other = solve(problem), solve(turned)
    np.testing.assert_allclose(other.W, one.W[instances], atol=1e-10)
    assert (other.status == one.status[instances]).all()


@given(seeds)
def test_an_instance_alone_is_the_instance_in_its_batch(seed):
    problem = random_problem(5, 5, 3, 5, seed)
    together, listed = solve(problem), solve(list(problem))
    for i, alone in enumerate(listed):
        np.testing.assert_allclose(alone.W, together.W[i], rtol=0, atol=1e-12)


@given(seeds, st.sampled_from([1e-150, 1e-3, 7.0, 1e150]), st.booleans())
def test_scaling_keys_or_queries_scales_the_solution(seed, scale, keys):
    problem = random_problem(2, 4, 4, 5, seed)
    left, right = (scale, 1.0) if keys else (1.0, scale)
    scaled = solve(MarginProblem(problem.left * left, problem.right * right))
    plain = solve(problem)
    np.testing.assert_allclose(scaled.W * scale, plain.W, atol=1e-11)
    assert (scaled.status == plain.status).all()
    np.testing.assert_allclose(scaled.gap, plain.gap, atol=2e-12)


@given(seeds)
def test_scaling_single_constraints_costs_no_accuracy(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(1, 4, 4, 5, seed)[0]
    scale = 10.0 ** rng.uniform(-12, 12, size=12)
    # a / s against c / s is the same constraint.
    scaled = MarginProblem(problem.left / scale[:, None], problem.right, 1 / scale)
    one, other = solve(problem), solve(scaled)
    assert other.status is Status.OPTIMAL
    np.testing.assert_allclose(other.W, one.W, atol=1e-12)


@given(seeds)
def test_rotating_keys_rotates_the_solution(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(2, 4, 4, 5, seed)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    turned = MarginProblem(problem.left @ turn.T, problem.right)
    np.testing.assert_allclose(solve(turned).W, turn @ solve(problem).W, atol=1e-11)


@given(seeds)
def test_repeated_constraints_change_nothing(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(2, 4, 4, 5, seed)
    more = np.concatenate([np.arange(12), rng.integers(0, 12, size=20)])
    repeated = MarginProblem(problem.left[:, more], problem.right[:, more])
    solution = solve(repeated)
    np.testing.assert_allclose(solution.W, solve(problem).W, atol=1e-12)
    assert (solution.status == Status.OPTIMAL).all()


@pytest.mark.parametrize("margin", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_thin_margins_are_certified(margin):
    for seed in range(5):
        solution = solve(thin_problem(margin, seed))
        assert solution.status is Status.OPTIMAL
        assert solution.gap <= 1e-9
        assert 1 / solution.norm > margin


def test_below_that_the_gap_is_told():
    for margin in (1e-9, 1e-11):
        solution = solve(thin_problem(margin, 0))
        assert solution.status in (Status.OPTIMAL, Status.STOPPED_EARLY)
        assert solution.gap < 1e-2
        assert solution.dual_value <= solution.value


def test_nearly_equal_constraints_on_a_thin_margin():
    rng = np.random.default_rng(0)
    thin = thin_problem(1e-5, 1)
    for distance in (1e-6, 1e-8, 1e-12):
        copies = thin.left + distance * rng.normal(size=thin.left.shape)
        both = MarginProblem(np.vstack([thin.left, copies]), np.ones((120, 1)))
        solution = solve(both)
        assert np.isfinite(solution.norm)
        if 1 / solution.norm >= 1e-6:
            assert solution.gap <= 1e-9


@pytest.mark.parametrize(("m", "d"), [(2000, 50), (2000, 20)])
def test_two_thousand_constraints(m, d):
    rng = np.random.default_rng(0)
    target = rng.normal(size=(d, d))
    a, b = unit(rng.normal(size=(m, d))), unit(rng.normal(size=(m, d)))
    a *= np.sign(np.einsum("jd,de,je->j", a, target, b))[:, None]
    solution = solve(MarginProblem(a, b))
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-9


def test_large_dimensions_never_form_the_constraints_in_full():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(40, 768)), rng.normal(size=(40, 768))
    a[1], b[1] = a[0], b[0]
    solution = solve(MarginProblem(a, b))
    assert solution.status is Status.OPTIMAL


def test_tolerance_problem_and_geometry_are_checked():
    problem = random_problem(1, 2, 2, 2)
    for tolerance in (0.0, 1.0, np.nan, True, "small"):
        with pytest.raises(InvalidInputError, match="tolerance"):
            solve(problem, tolerance=tolerance)
    for wrong in (3, None, [1]):
        with pytest.raises(InvalidInputError, match="problem"):
            solve(wrong)

    class Unheard(Frobenius):
        name = "unheard of"

        def norm(self, W):
            return 2 * super().norm(W)

    with pytest.raises(InvalidInputError, match="geometry"):
        solve(problem, Unheard())


def test_lists_may_mix_shapes_and_batches():
    batch, alone = random_problem(3, 2, 3, 4), random_problem(1, 2, 2, 5)[0]
    problems = [batch, batch[1], alone, batch[0]]
    solutions = solve(problems)
    assert [s.W.shape for s in solutions] == [(3, 4, 4), (4, 4), (5, 5), (4, 4)]
    assert all(s.problem is p for s, p in zip(solutions, problems, strict=True))
    np.testing.assert_allclose(solutions[1].W, solutions[0].W[1], atol=1e-14)
    np.testing.assert_allclose(solutions[3].W, solutions[0].W[0], atol=1e-14)
    assert isinstance(solutions[3].gap, float)
    assert solutions[3].support_tokens.shape == (2, 1, 3)
    assert solve([]) == []


def test_an_empty_batch():
    problem = random_problem(3, 2, 3, 4)[:0]
    assert solve(problem).W.shape == (0, 4, 4)


def test_a_method_that_fails_stops_its_instance_alone(monkeypatch):
    solve_one = least_distance._solve

    def fail_on_second(scaled, i, *arguments):
        if i == 1:
            raise RuntimeError("too many iterations")
        return solve_one(scaled, i, *arguments)

    def fail(*arguments):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(active_sets, "pivot", fail)
    monkeypatch.setattr(least_distance, "_solve", fail_on_second)
    solution = solve(random_problem(2, 2, 3, 4))
    assert solution.status[0] is Status.OPTIMAL
    # Alone in the last batch, the second is the first of it, and is solved there.
    assert solution.status[1] is Status.OPTIMAL
    monkeypatch.setattr(least_distance, "_solve", fail)
    monkeypatch.setattr(active_sets, "_solve", fail)
    solution = solve(random_problem(2, 2, 3, 4))
    assert (solution.status == Status.STOPPED_EARLY).all()
    assert np.isnan(solution.W).all()
    assert "stopped early: 2" in repr(solution)


def test_progress_is_shown_on_standard_error_only(capsys):
    solve(random_problem(2, 2, 2, 3), progress=True)
    assert capsys.readouterr().out == ""
