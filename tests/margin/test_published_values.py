"""Values that the literature's data sets are known to have, and the ranks of their solutions."""

import functools
import warnings

import cvxpy as cp
import numpy as np
import pytest
from margin_examples import stored_tokens

from attractor.datasets import unit_tokens
from attractor.geometry import Lp, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection, token_scores
from attractor.support.errors import DuplicateTokensWarning, Status


@functools.cache
def optimal_problem(n, T, d, seeds):
    """Data of these seeds to about 1e-7, and the first of the tokens that score highest."""
    tokens, head = unit_tokens(n, T, d, seeds=seeds)
    best = Selection.from_index(tokens, token_scores(tokens, head).argmax(-1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateTokensWarning)  # unit tokens on a line repeat
        return MarginProblem.from_selection(tokens, best)


@functools.cache
def frobenius_solution(n, T, d):
    """The solutions of a hundred data sets."""
    return solve(optimal_problem(n, T, d, 100))


def exact_problem(seeds):
    """The same with 6 sequences of 8 tokens in ten dimensions, to the last bit."""
    tokens, selection, _ = stored_tokens(seeds)
    return MarginProblem.from_selection(tokens, selection)


def test_nuclear_values_and_singular_values():
    solution = solve(exact_problem([0, 1]), Nuclear())
    np.testing.assert_allclose(solution.value, [4.3487901243, 4.6354791612], rtol=1e-8)
    singular = np.linalg.svd(solution.W, compute_uv=False)
    np.testing.assert_allclose(singular[0, :3], [3.556574, 0.792216, 0], atol=2e-6)
    np.testing.assert_allclose(singular[1, :4], [2.588715, 1.447813, 0.598951, 0], atol=2e-6)
    assert solution.rank.tolist() == [2, 3]


def test_correlation_of_the_frobenius_and_the_nuclear_solution():
    problem = exact_problem([0, 1])
    one, other = solve(problem).W, solve(problem, Nuclear()).W
    lengths = np.linalg.norm(one, axis=(1, 2)) * np.linalg.norm(other, axis=(1, 2))
    np.testing.assert_allclose((one * other).sum((1, 2)) / lengths, [0.83076, 0.88948], atol=1e-5)


@pytest.mark.parametrize(
    ("p", "norm"),
    [(1.1, 10.35369674), (1.75, 3.45949212), (2, 2.6601569144), (3, 1.41786895), (4, 1.02975883)],
)
def test_entrywise_norms(p, norm):
    problem = exact_problem([1])[0]
    solution = solve(problem, Lp(p))
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(norm, rel=1e-8)
    assert 15 <= (problem.margins(solution.W) < 1 + 1e-5).sum() <= 19


def test_one_query_makes_nuclear_and_frobenius_agree():
    problem = optimal_problem(1, 6, 8, range(20))
    one, other = solve(problem), solve(problem, Nuclear())
    np.testing.assert_allclose(other.W, one.W, atol=1e-7 * one.value.max())
    assert (other.rank == 1).all()
    # The same with several parallel queries of different lengths.
    rng = np.random.default_rng(0)
    a, z = rng.normal(size=(5, 8)), rng.normal(size=8)
    parallel = MarginProblem(a, rng.uniform(0.5, 2, size=(5, 1)) * z)
    np.testing.assert_allclose(solve(parallel, Nuclear()).W, solve(parallel).W, atol=1e-7)


def test_many_nuclear_solutions_share_one_value():
    # Every [[1, c], [c, 1]] with |c| <= 1 has nuclear norm 2 and meets both constraints.
    solution = solve(MarginProblem(np.eye(2), np.eye(2)), Nuclear())
    assert solution.value == pytest.approx(2, rel=1e-9)
    assert solution.margin == pytest.approx(1, rel=1e-9)
    off = solution.W[0, 1]
    np.testing.assert_allclose(solution.W, [[1, off], [off, 1]], atol=1e-8)
    assert solution.uniqueness == "not unique"


FEASIBLE = {  # (n, T): {d: feasible data sets of a hundred}
    (5, 5): {1: 0, 2: 34, 3: 91, 4: 100, 10: 100, 20: 100},
    (10, 5): {1: 0, 2: 2, 3: 12, 4: 88, 10: 100, 20: 100},
    (15, 5): {1: 0, 2: 0, 3: 0, 4: 15, 5: 96, 10: 100, 20: 100},
    (5, 10): {1: 0, 2: 37, 3: 76, 4: 100, 10: 100, 20: 100},
    (5, 15): {1: 0, 2: 33, 3: 65, 4: 98, 10: 100, 20: 100},
}
RANKS = {  # (n, T): {d: mean rank of the Frobenius and of the nuclear solution, where feasible}
    (5, 5): {2: (1.91, 1.74), 3: (2.97, 2.55), 4: (3.98, 2.57), 10: (5.0, 2.50), 20: (5.0, 2.55)},
    (10, 5): {2: (2.0, 2.0), 3: (3.0, 2.83), 4: (4.0, 3.48), 10: (9.99, 3.77), 20: (10.0, 3.83)},
    (15, 5): {4: (4.0, 3.60), 10: (10.0, 4.67), 20: (15.0, 4.61)},
    (5, 10): {2: (2.0, 1.89), 3: (3.0, 2.49), 4: (4.0, 3.07), 10: (5.0, 3.07), 20: (5.0, 3.03)},
    (5, 15): {2: (2.0, 1.94), 3: (3.0, 2.68), 4: (3.97, 2.91), 10: (5.0, 3.28), 20: (5.0, 3.17)},
}
SETTINGS = [(n, T, d) for (n, T), counts in FEASIBLE.items() for d in counts]


@pytest.mark.parametrize(("n", "T", "d"), SETTINGS)
def test_feasible_counts(n, T, d):
    status = frobenius_solution(n, T, d).status
    assert (status == Status.OPTIMAL).sum() == FEASIBLE[n, T][d]
    assert (status == Status.INFEASIBLE).sum() == 100 - FEASIBLE[n, T][d]


@pytest.mark.parametrize("setting", [(5, 5, 3), (5, 5, 4), (10, 5, 4), (5, 10, 10)])
def test_ranks(setting):
    check_ranks(*setting)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "T", "d"), [s for s in SETTINGS if s[2] in RANKS[s[0], s[1]]])
def test_every_rank_of_the_table_against_an_independent_solve(n, T, d):
    problem, nuclear = check_ranks(n, T, d)
    for one, solution in zip(problem, nuclear, strict=True):
        if np.isfinite(solution.value):
            assert solution.rank == rank_by_interior_point(one)


def check_ranks(n, T, d):
    problem = optimal_problem(n, T, d, 100)
    frobenius = frobenius_solution(n, T, d)
    # At the default tolerance two or three of the 1,751 feasible data sets are told no rank.
    nuclear = solve(problem, Nuclear(), tolerance=1e-12)
    feasible = frobenius.status == Status.OPTIMAL
    assert (nuclear.gap[feasible] <= 1e-10).all()
    assert (nuclear.status[~feasible] == Status.INFEASIBLE).all()
    assert (nuclear.rank[feasible] >= 0).all()
    # Singular values of the Frobenius solution, cut as the published code does.
    ranks = np.linalg.matrix_rank(frobenius.W[feasible], tol=1e-7)
    expected = RANKS[n, T][d]
    assert ranks.mean() == pytest.approx(expected[0], abs=0.1)
    assert nuclear.rank[feasible].mean() == pytest.approx(expected[1], abs=0.1)
    return problem, [nuclear[i] for i in range(len(problem))]


def rank_by_interior_point(problem):
    """Rank of the nuclear solution by Clarabel in the spans, singular values cut at 1e-5."""
    left, right = (reduced(vectors) for vectors in (problem.left, problem.right))
    W = cp.Variable((left.shape[1], right.shape[1]))
    rows = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
    model = cp.Problem(cp.Minimize(cp.normNuc(W)), [rows @ cp.vec(W, order="C") >= 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is asked for more than it promises
        model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    values = np.linalg.svd(W.value, compute_uv=False)
    return int((values > 1e-5 * values[0]).sum())


def reduced(vectors):
    """Coordinates in an orthonormal basis of the span."""
    _, values, basis = np.linalg.svd(vectors, full_matrices=False)
    return vectors @ basis[values > 1e-12 * values[0]].T
