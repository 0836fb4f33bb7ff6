import warnings

import cvxpy as cp
import mpmath
import numpy as np
import pytest
from margin_examples import random_problem, stored_tokens

from attractor.datasets import unit_tokens
from attractor.geometry import Frobenius, Lp, Nuclear, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.faces.rank import certified_rank
from attractor.margin.selection import optimal_tokens


@pytest.fixture(scope="module")
def stored():
    tokens, selection, _ = stored_tokens(slice(0, 2))
    return solve(MarginProblem.from_selection(tokens, selection), Nuclear())


def test_stored_ranks(stored):
    assert stored.rank.tolist() == [2, 3]
    values = np.linalg.svd(stored.W, compute_uv=False)
    np.testing.assert_allclose(values[0, :2], [3.556574, 0.792216], atol=1e-6)
    np.testing.assert_allclose(values[1, :3], [2.588715, 1.447813, 0.598951], atol=1e-6)


def test_the_tail_is_below_its_bound(stored):
    evidence = stored.rank_evidence
    values = np.linalg.svd(stored.W, compute_uv=False)
    for row, rank, bound in zip(values, evidence.rank, evidence.tail_bound, strict=True):
        assert row[rank:].sum() <= bound
        assert bound < 1e-6


def test_ranks_of_random_data_agree_with_tight_solutions():
    problem = random_problem(40, 6, 8, 10, seed=0)
    solution = solve(problem, Nuclear())
    values = np.linalg.svd(solve(problem, Nuclear(), tolerance=1e-11).W, compute_uv=False)
    assert (solution.rank == (values > 1e-5 * values[:, :1]).sum(-1)).all()
    assert (solution.rank_evidence.separation > 1e-3).all()


def test_ranks_of_a_hundred_data_sets():
    tokens, head = unit_tokens(6, 8, 10, seeds=range(100))
    problem = MarginProblem.from_selection(tokens, optimal_tokens(tokens, head))
    ranks = solve(problem, Nuclear()).rank
    assert [(ranks == k).sum() for k in (2, 3, 4)] == [8, 68, 24]


def test_ranks_agree_with_an_independent_solver():
    problem = random_problem(3, 6, 8, 10, seed=0)
    solution = solve(problem, Nuclear())
    for one, rank in zip(problem, solution.rank, strict=True):
        W = cp.Variable(one.shape)
        rows = (one.left[:, :, None] * one.right[:, None]).reshape(len(one.left), -1)
        model = cp.Problem(cp.Minimize(cp.normNuc(W)), [rows @ cp.vec(W, order="C") >= 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is asked for more than it promises
            model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        values = np.linalg.svd(W.value, compute_uv=False)
        assert rank == (values > 1e-5 * values[0]).sum()


def test_a_rank_is_a_number_for_a_single_problem():
    solution = solve(MarginProblem([[3.0, 4.0]], [[0.0, 2.0, 0.0]]), Nuclear())
    assert solution.rank == 1
    assert isinstance(solution.rank, int)
    assert solution.rank_evidence.smallest_kept == pytest.approx(0.1)
    assert solution.rank_evidence.separation == pytest.approx(1)


def test_zero_and_infeasible():
    assert solve(MarginProblem(np.eye(2), np.eye(2), -1.0), Nuclear()).rank == 0
    contradiction = MarginProblem([[1.0], [-1.0]], [[1.0], [1.0]])
    assert solve(contradiction, Nuclear()).rank == -1


def test_evidence_is_free_of_units(stored):
    tiny = MarginProblem(
        1e-150 * stored.problem.left, 1e-150 * stored.problem.right, stored.problem.bounds
    )
    solution = solve(tiny, Nuclear())
    assert solution.rank.tolist() == [2, 3]
    np.testing.assert_allclose(
        solution.rank_evidence.smallest_kept, 1e300 * stored.rank_evidence.smallest_kept, rtol=1e-4
    )


def test_a_loose_gap_leaves_the_rank_open(stored):
    # Of the same matrices, multipliers that prove little say nothing of small singular values.
    loose = solve(stored.problem, Nuclear(), tolerance=0.5)
    assert loose.gap.max() > 1e-3
    evidence = certified_rank(stored.problem, loose.W, loose.multipliers, loose.certificate)
    assert (evidence.rank == -1).all()


def test_no_rank_without_multipliers(stored):
    nothing = np.zeros_like(stored.multipliers)
    evidence = certified_rank(stored.problem, stored.W, nothing, stored.certificate)
    assert (evidence.rank == -1).all()


def test_two_orthogonal_constraints_allow_rank_one_and_say_two_at_most():
    # [[1, 1], [1, 1]] is a solution too: the multipliers bound the rank of every one by two.
    solution = solve(MarginProblem(np.eye(2), np.eye(2)), Nuclear())
    assert solution.rank_evidence.multiplicity == 2
    assert solution.rank_evidence.tail_bound == 0


@pytest.mark.parametrize("geometry", [Spectral(), Lp(1), Lp(np.inf)], ids=lambda g: g.name)
def test_rank_is_not_known_where_solutions_need_not_be_unique(geometry):
    solution = solve(random_problem(2, 3, 4, 4, seed=0), geometry)
    assert solution.rank.tolist() == [-1, -1]
    assert solution.rank_evidence is None


def test_strictly_convex_norms_count_as_before():
    assert solve(MarginProblem(np.eye(2), np.eye(2)), Frobenius()).rank == 2


@pytest.mark.parametrize("seed", range(4))
def test_evidence_holds_where_the_combination_nearly_cancels(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(2, 3)), rng.normal(size=(1, 3)).repeat(2, axis=0)
    left[1] = -left[0] + 1e-8 * left[1]
    right[1] += 1e-8 * rng.normal(size=3)
    solution = solve(MarginProblem(left, right), Nuclear())
    with mpmath.workdps(50):
        a, b = mpmath.matrix(left.tolist()), mpmath.matrix(right.tolist())
        M = a.T * mpmath.diag(solution.multipliers.tolist()) * b
        tau = sorted(mpmath.svd_r(M, compute_uv=False))[::-1]
        evidence = solution.rank_evidence
        separation = 1 - tau[evidence.multiplicity] / tau[0]
        assert evidence.separation <= separation
        assert evidence.tail_bound >= (solution.value - solution.dual_value) / separation * (
            1 - 1e-9
        )
