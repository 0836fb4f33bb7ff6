"""Ranks of solutions, feasible problems apart from infeasible ones."""

import numpy as np
import pytest
from scipy.optimize import linprog

from attractor.datasets import unit_tokens
from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.papers import Case, Outcome, examine, get_claim, get_figure
from attractor.papers.drawing import compute
from attractor.papers.transformers_as_svms.data import first_best_tokens
from attractor.papers.transformers_as_svms.figures import rank as figure
from attractor.tokens import Tokens

FIGURE = get_figure("transformers-as-svms/rank")
FEASIBLE = {
    "n = 5, T = 5": [0, 34, 91, 100, 100, 100, 100, 100],
    "n = 10, T = 5": [0, 2, 12, 88, 100, 100, 100, 100],
    "n = 15, T = 5": [0, 0, 0, 15, 96, 100, 100, 100],
    "n = 5, T = 10": [0, 37, 76, 100, 100, 100, 100, 100],
    "n = 5, T = 15": [0, 33, 65, 98, 100, 100, 100, 100],
}
NUCLEAR = {  # at d = 2, 3, 4, 10, 20
    "n = 5, T = 5": [1.74, 2.55, 2.57, 2.50, 2.55],
    "n = 10, T = 5": [2.0, 2.83, 3.48, 3.77, 3.83],
    "n = 15, T = 5": [np.nan, np.nan, 3.60, 4.67, 4.61],
    "n = 5, T = 10": [1.89, 2.49, 3.07, 3.07, 3.03],
    "n = 5, T = 15": [1.94, 2.68, 2.91, 3.28, 3.17],
}


@pytest.fixture(scope="module")
def data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "SHAPES", ((5, 5), (10, 5)))
        patch.setattr(figure, "DIMENSIONS", (1, 2, 3, 4, 15))
        return compute(FIGURE, seeds=3, as_published=True)[0]


def problem_of(n, T, d, seed):
    tokens, head = unit_tokens(n, T, d, seeds=[seed])
    return MarginProblem.from_selection(tokens, first_best_tokens(tokens, head))


@pytest.mark.parametrize("d", [2, 3, 4])
def test_feasibility_is_that_of_linear_programming(data, d):
    for seed in range(3):
        problem = problem_of(5, 5, d, seed)
        rows = (problem.left[0, :, :, None] * problem.right[0, :, None, :]).reshape(-1, d * d)
        found = linprog(np.zeros(d * d), -rows, -np.ones(len(rows)), bounds=(None, None))
        ours = data["feasible"].sel(shape="n = 5, T = 5", d=d, instance=seed)
        assert bool(ours) == (found.status == 0)


def test_one_dimension_is_never_feasible_and_has_no_rank(data):
    assert not data["feasible"].sel(d=1).any()
    assert data["rank"].sel(d=1).isnull().all()


def test_every_feasible_problem_has_its_ranks(data):
    np.testing.assert_array_equal(data["rank"].notnull().all("norm"), data["feasible"])
    frobenius, nuclear = data["rank"].sel(norm="frobenius"), data["rank"].sel(norm="nuclear")
    assert not (nuclear > frobenius).any()


def test_published_ranks_count_infeasible_problems_as_one(data):
    infeasible = ~data["feasible"]
    assert (data["published_frobenius"].where(infeasible, 1) == 1).all()
    assert (data["published_nuclear"].where(infeasible, 1) == 1).all()


def test_published_frobenius_ranks_are_those_of_an_absolute_cut(data):
    problem = problem_of(10, 5, 15, 2)
    rank = np.linalg.matrix_rank(solve(problem, Frobenius()).W[0], tol=1e-7)
    assert data["published_frobenius"].sel(shape="n = 10, T = 5", d=15, instance=2) == rank


@pytest.mark.slow
def test_the_published_figure_and_what_it_should_have_shown():
    data, _ = compute(FIGURE, size="paper", as_published=True)
    mean = data.mean("instance")
    for shape in FEASIBLE:
        counts = data["feasible"].sel(shape=shape).sum("instance")
        np.testing.assert_array_equal(counts, FEASIBLE[shape])
        nuclear = mean["rank"].sel(shape=shape, norm="nuclear", d=[2, 3, 4, 10, 20])
        np.testing.assert_allclose(nuclear, NUCLEAR[shape], atol=0.1)
    assert tuple(data["d"].values) == figure.DIMENSIONS
    solid = mean["published_frobenius"].isel(shape=[0, 1, 2]).sel(d=[3, 4, 5])
    published = [[2.8, 4.0, 4.9], [1.25, 3.6, 5.0], [1.0, 1.45, 4.85]]
    np.testing.assert_allclose(solid, published, atol=0.05)
    dashed = mean["published_nuclear"].isel(shape=[0, 1, 2]).sel(accuracy=1e-5, d=[10, 15, 20])
    published = [[4.95, 5.0, 5.0], [9.1, 9.95, 10.0], [9.7, 13.9, 14.95]]
    np.testing.assert_allclose(dashed, published, atol=0.6)


def test_rows_without_a_choice_leave_the_most_there_can_be_as_it_is():
    claim = get_claim("transformers-as-svms/nearly-full-rank")
    case = claim.example()
    tokens = case.tokens
    mask = tokens.mask.copy()
    mask[0] = np.arange(tokens.length) == case.optimal.mask[0].argmax()
    one_token = Tokens(tokens.keys, tokens.queries, tokens.labels, mask, tokens.values)
    found = examine(claim, case.replace(tokens=one_token)).measured
    assert found.details["most there can be"] == len(mask) - 1


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_rank_of_one_solution_of_many_says_nothing(n, size):
    # Of orthogonal pairs the matrix of ones, of rank one, is as short as the identity.
    keys = np.stack([size * np.eye(n), np.zeros((n, n))], axis=1)
    case = Case.from_scores(keys, [[1.0, 0.0]] * n, queries=np.eye(n), parameterization="W")
    ones = np.linalg.norm(np.ones((n, n)) / size, "nuc")
    assert ones == pytest.approx(float(case.solution(Nuclear()).value), rel=1e-8)
    found = examine(get_claim("transformers-as-svms/nearly-full-rank"), case)
    assert found.outcome is Outcome.VACUOUS
    assert found.measured.details["nuclear solution"] == "not unique"


def test_a_solver_stopped_early_is_beside_the_certified_rank():
    claim = get_claim("transformers-as-svms/nearly-full-rank")
    details = examine(claim, claim.example()).measured.details
    stopped = next(value for name, value in details.items() if "at an accuracy of" in name)
    assert stopped >= details["certified rank"]
