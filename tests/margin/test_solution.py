import numpy as np
import pytest
from margin_examples import random_problem, random_tokens, stored_tokens

from attractor.geometry import Lp, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.support.errors import InvalidInputError, Status


def test_multipliers_are_dual_feasible_and_build_the_matrix():
    problem = random_problem(4, 4, 4, 5)
    solution = solve(problem)
    assert (solution.multipliers >= 0).all()
    np.testing.assert_allclose(solution.dual_norm, 1, rtol=1e-12)
    np.testing.assert_allclose(
        problem.apply_adjoint(solution.multipliers) * solution.norm[:, None, None],
        solution.W,
        atol=1e-12,
    )
    np.testing.assert_allclose(solution.multipliers.sum(-1), solution.value, rtol=1e-11)


def test_support_tokens_stand_at_the_smallest_margin():
    tokens, selection, _ = stored_tokens(slice(0, 4))
    solution = solve(MarginProblem.from_selection(tokens, selection))
    scores = tokens.scores(solution.W)
    chosen = np.where(selection.mask, scores, -np.inf).max(-1, keepdims=True)
    at_margin = (chosen - scores <= 1 + 1e-6) & ~selection.mask
    np.testing.assert_array_equal(solution.support_tokens, at_margin)
    assert solution[2].support_tokens.shape == (6, 1, 8)
    np.testing.assert_array_equal(solution[2].support_tokens, solution.support_tokens[2])


def test_support_tokens_need_tokens():
    solution = solve(MarginProblem(np.eye(2), np.eye(2)))
    with pytest.raises(InvalidInputError, match="solution"):
        _ = solution.support_tokens


def test_choosing_instances():
    solution = solve(random_problem(3, 3, 3, 4))
    alone = solution[-1]
    assert alone.status is Status.OPTIMAL
    assert isinstance(alone.norm, float)
    assert alone.norm == solution.norm[2]
    assert alone.rank == solution.rank[2]
    np.testing.assert_array_equal(alone.multipliers, solution.multipliers[2])
    some = solution[:2]
    assert len(some) == 2
    np.testing.assert_array_equal(some.gap, solution.gap[:2])


def test_padding_is_dropped_and_harmless():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 4))
    present = np.array([[True, False, True, True, False], [True] * 5])
    solution = solve(MarginProblem(left, right, present=present))
    alone = solve(MarginProblem(left[0, present[0]], right[0, present[0]]))
    np.testing.assert_allclose(solution.W[0], alone.W, atol=1e-13)
    assert (solution.multipliers[0, ~present[0]] == 0).all()
    assert not solution.support[0, ~present[0]].any()
    assert solution[0].multipliers.shape == (3,)


def test_tables_say_what_matters():
    problem = random_problem(3, 3, 3, 4)
    solution = solve(problem)
    assert "optimal: 3" in repr(solution)
    assert "relative gap" in repr(solution)
    assert "norm" in repr(solution[0])
    assert "<table" in solution[0]._repr_html_()
    conflict = solve(MarginProblem([[1.0], [-1.0]], [[1.0], [1.0]]))
    assert "2 constraints: 0, 1" in repr(conflict)
    assert "No matrix" in repr(conflict)
    assert max(len(line) for line in repr(solution).splitlines()) <= 100


def test_labeled_arrays():
    tokens, selection = random_tokens(3, 3, 3, 4)
    data = solve(MarginProblem.from_selection(tokens, selection)).to_xarray()
    assert data["W"].dims == ("instance", "row", "column")
    assert data["token"].dims == ("instance", "constraint")
    assert data["status"].values.tolist() == ["optimal"] * 3
    assert data.attrs["geometry"] == "frobenius"
    single = solve(random_problem(1, 3, 3, 4)[0]).to_xarray()
    assert single["gap"].dims == ()
    assert str(single["status"].values) == "optimal"


def test_a_rank_that_leaves_small_singular_values_open_says_so():
    # The only solution is diagonal, of rank three; its last entry is too small to be told.
    e, pairs = np.eye(3), np.indices((3, 3)).reshape(2, -1)
    equality = pairs[0] != pairs[1]
    bounds = np.where(equality, 0.0, np.where(pairs[0] == 2, 1e-8, 1.0))
    problem = MarginProblem(e[pairs[0]], e[pairs[1]], bounds, equality)
    in_frobenius = solve(problem)
    assert in_frobenius.rank == 2
    assert "at least 2" in repr(in_frobenius)
    nuclear = solve(problem, Nuclear())
    assert nuclear.rank == 2
    assert nuclear.rank_evidence.tail_bound >= 1e-8
    assert "2; all other singular values add up to at most" in repr(nuclear)
    assert "at least" not in repr(solve(MarginProblem(e, e)))


def test_labeled_arrays_of_one_problem_say_whether_the_solution_is_unique():
    problem = MarginProblem([[1.0, 0.0]], [[1.0]])
    assert solve(problem, Lp(np.inf)).to_xarray()["uniqueness"] == "not unique"
    assert solve(problem, Lp(1)).to_xarray()["uniqueness"] == "unique"
