import numpy as np
import pytest

from attractor.analysis.measures import measure_direction, project_on_equalities
from attractor.geometry import Frobenius, Lp, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.selection import Selection
from attractor.tokens import Tokens


@pytest.fixture
def solution(rng):
    tokens = Tokens(rng.normal(size=(4, 3, 6)), rng.normal(size=(4, 5)))
    selection = Selection.from_index(tokens, [0, 1, 2, 0])
    return solve(MarginProblem.from_selection(tokens, selection), Frobenius())


def test_the_solution_measures_one_at_any_length(solution):
    W = np.stack([1e-3 * solution.W, solution.W, 1e9 * solution.W])
    measures = measure_direction(W, solution)
    np.testing.assert_allclose(measures.margin_ratio, 1, rtol=1e-9)
    np.testing.assert_allclose(measures.correlation, 1, rtol=1e-12)
    np.testing.assert_allclose(measures.kkt_residual, 0, atol=1e-9)


def test_other_directions_measure_less_than_one(solution, rng):
    W = solution.W + 0.3 * rng.normal(size=(200, *solution.W.shape))
    measures = measure_direction(W, solution)
    assert (measures.margin_ratio < 1).all()
    assert (measures.correlation < 1).all()
    assert (measures.kkt_residual > 1e-3).all()
    closer = measure_direction(0.9 * solution.W + 0.1 * W, solution)
    assert (closer.margin_ratio > measures.margin_ratio).all()


def test_the_divergence_is_that_of_the_directions_and_keeps_its_digits(solution, rng):
    step = 1e-9 * rng.normal(size=solution.W.shape)
    W = np.stack([5 * solution.W, solution.W + step, rng.normal(size=solution.W.shape)])
    measures = measure_direction(W, solution)
    found = measures.directional_bregman_divergence
    unit = solution.W / np.linalg.norm(solution.W)
    across = step - (step * unit).sum() * unit
    assert found[0] < 1e-31
    assert found[1] == pytest.approx((across**2).sum() / (solution.W**2).sum() / 2, rel=1e-6)
    assert found[2] == pytest.approx(1 - measures.correlation[2])
    nuclear = solve(solution.problem, Nuclear())
    assert np.isnan(measure_direction(W, nuclear).directional_bregman_divergence).all()
    power = solve(solution.problem, Lp(1.5))
    b = W[2] / Lp(1.5).norm(W[2])
    expected = 1 - (np.sign(b) * np.abs(b) ** 0.5 * power.W).sum() / power.value
    measured = measure_direction(W, power).directional_bregman_divergence[2]
    assert measured == pytest.approx(expected, rel=1e-9)


def test_margin_ratio_by_hand():
    tokens = Tokens([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 2.0], [0.0, 0.0]]], [[1.0], [1.0]])
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0]))
    solution = solve(problem, Frobenius())
    np.testing.assert_allclose(solution.W, [[1.0], [0.5]], rtol=1e-12)
    W = np.array([[[3.0], [4.0]]])
    expected = min(3, 8) / 5 * np.sqrt(1.25)
    assert measure_direction(W, solution).margin_ratio[0] == pytest.approx(expected)
    wrong_side = measure_direction(-W, solution)
    assert wrong_side.margin_ratio[0] == pytest.approx(-8 / 5 * np.sqrt(1.25))
    assert wrong_side.kkt_residual[0] == pytest.approx(1 + 8 / 5 * np.sqrt(1.25))


def test_matrices_without_a_direction_measure_nothing(solution):
    W = np.stack([0 * solution.W, np.nan * solution.W])
    measures = measure_direction(W, solution)
    assert np.isnan(measures.margin_ratio).all()
    assert np.isnan(measures.correlation).all()


def test_an_infeasible_problem_measures_nothing(solution):
    tokens = Tokens([[[1.0], [-1.0]], [[1.0], [-1.0]]], [[1.0], [1.0]])
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 1]))
    infeasible = solve(problem, Frobenius())
    assert np.isnan(measure_direction(np.ones((2, 1, 1)), infeasible).margin_ratio).all()


def test_equalities_are_projected_out_before_the_ratio(rng):
    keys = rng.normal(size=(2, 4, 6))
    tokens = Tokens(keys, rng.normal(size=(2, 5)))
    mask = np.zeros((2, 1, 4), bool)
    mask[0, 0, [0, 2]] = mask[1, 0, 1] = True
    selection = Selection(mask, np.zeros((2, 1), bool))
    solution = solve(MarginProblem.from_selection(tokens, selection), Frobenius())
    pair = np.einsum("d,e->de", keys[0, 0] - keys[0, 2], tokens.queries[0, 0])
    W = solution.W + 5 * pair
    measures = measure_direction(W[None], solution)
    assert measures.margin_ratio[0] == pytest.approx(1, rel=1e-9)
    assert measures.correlation[0] == pytest.approx(1, rel=1e-12)
    assert measures.removed_norm[0] == pytest.approx(5 * np.linalg.norm(pair))
    projected = project_on_equalities(W[None], solution.problem)[0]
    assert np.sum(projected * pair) == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("scale", [2.0**600, 2.0**-600])
def test_equalities_of_any_length_are_removed_alike(scale, rng):
    left, right, W = rng.normal(size=(2, 3)), rng.normal(size=(2, 4)), rng.normal(size=(1, 3, 4))
    of = [
        MarginProblem(factor * left, right, np.zeros(2), np.ones(2, bool)) for factor in (1, scale)
    ]
    projected = [project_on_equalities(W, problem) for problem in of]
    np.testing.assert_array_equal(*projected)


def test_loose_bounds_count_as_violated_never_as_margin():
    problem = MarginProblem(
        left=np.array([[1.0, 0.0], [0.0, 1.0]]), right=np.ones((2, 1)), bounds=np.array([1.0, 0.0])
    )
    solution = solve(problem, Frobenius())
    measures = measure_direction(np.array([[[2.0], [-1e-3]], [[2.0], [1e-3]]]), solution)
    assert measures.violated.tolist() == [1, 0]
    np.testing.assert_allclose(measures.margin_ratio, 1, rtol=1e-6)


def test_correlation_is_left_out_where_another_solution_may_exist():
    # The largest entry of W alone is asked for: the other entry is free.
    free = solve(MarginProblem([[1.0, 0.0]], [[1.0]]), Lp(np.inf))
    assert free.uniqueness == "not unique"
    measures = measure_direction(free.W[None], free)
    assert np.isnan(measures.correlation).all()
    assert measures.margin_ratio[0] == pytest.approx(1)


@pytest.mark.parametrize("geometry", [Nuclear(), Lp(1)], ids=lambda g: g.name)
def test_correlation_with_a_solution_known_to_be_the_only_one(solution, geometry, rng):
    only = solve(solution.problem, geometry)
    assert only.uniqueness == "unique"
    W = np.stack([3 * only.W, rng.normal(size=only.W.shape)])
    cosine = (W[1] * only.W).sum() / np.linalg.norm(W[1]) / np.linalg.norm(only.W)
    np.testing.assert_allclose(measure_direction(W, only).correlation, [1, cosine], rtol=1e-9)
