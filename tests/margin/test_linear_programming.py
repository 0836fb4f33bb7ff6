"""Solutions in l_1 and l_inf, against linear programs written out and against closed forms."""

import numpy as np
import pytest
import scipy.optimize
from conic_oracle import random_small_problem
from hypothesis import given, strategies as st
from margin_examples import random_problem, stored_tokens, thin_problem

from attractor.geometry import Lp
from attractor.margin import MarginProblem, solve
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import certify
from attractor.margin.linear.methods import (
    solve_by_conservative_linear_programming,
    solve_by_linear_programming,
)
from attractor.margin.linear.simplex import solve_by_simplex
from attractor.margin.methods import Task
from attractor.support.errors import Status

SUM, LARGEST = Lp(1), Lp(np.inf)
BOTH = pytest.mark.parametrize("geometry", [SUM, LARGEST], ids=lambda geometry: geometry.name)
METHODS = [solve_by_linear_programming, solve_by_conservative_linear_programming, solve_by_simplex]


def by_one_method(method, problem, geometry):
    """W and the gap that it is certified to have."""
    problem = problem.batched()
    start = solve(problem)
    scaled = ScaledConstraints.of(problem)
    task = Task(scaled, geometry, 1e-9, *scaled.scale(start.W, start.multipliers))
    W, multipliers = scaled.restore(*method(task))
    return W, certify(problem, W, multipliers, geometry).gap


def smallest_norm(problem, geometry):
    """The optimum of the linear program in ``w`` and bounds on ``|w|``, written out."""
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(len(problem.left), -1)
    entries = rows.shape[1]
    bounded = entries if geometry == SUM else 1
    identity = np.eye(entries)
    limit = identity if geometry == SUM else np.ones((entries, 1))
    asked, held = ~problem.equality, problem.equality
    found = scipy.optimize.linprog(
        np.append(np.zeros(entries), np.ones(bounded)),
        A_ub=np.block(
            [
                [identity, -limit],
                [-identity, -limit],
                [-rows[asked], np.zeros((asked.sum(), bounded))],
            ]
        ),
        b_ub=np.concatenate([np.zeros(2 * entries), -problem.bounds[asked]]),
        A_eq=np.hstack([rows[held], np.zeros((held.sum(), bounded))]),
        b_eq=problem.bounds[held],
        bounds=(None, None),
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return found.fun


def integer_problem(seed, m, d, *, kept=0.5):
    """Small integers, so that many constraints meet in one point and many solutions tie."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(-1, 2, size=(2, m, d)).astype(float)
    target = rng.integers(-2, 3, size=(d, d))
    margins = np.einsum("jd,de,je->j", left, target, right)
    left = np.where(margins[:, None] < 0, -left, left)
    bounds = np.where(rng.random(m) < kept, np.abs(margins), np.minimum(np.abs(margins), 1))
    return MarginProblem(left, right, bounds)


@BOTH
@given(st.integers(0, 10**6))
def test_norms_agree_with_the_linear_program_written_out(geometry, seed):
    problem = random_small_problem(8 * seed + seed % 5)  # those kinds have generic equalities
    solution = solve(problem, geometry)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(smallest_norm(problem, geometry), rel=1e-8, abs=1e-9)


@BOTH
@given(st.integers(0, 10**6))
def test_equalities_hold_and_their_multipliers_may_be_negative(geometry, seed):
    problem = random_small_problem(8 * seed + 5)
    solution = solve(problem, geometry)
    if problem.equality.sum() > solution.W.size:  # rounding of the bounds contradicts some
        assert solution.gap == np.inf
        return
    assert solution.status is Status.OPTIMAL
    assert solution.equality_residual <= 1e-14
    assert solution.value == pytest.approx(smallest_norm(problem, geometry), rel=1e-8, abs=1e-9)


@BOTH
def test_interior_points_end_at_exact_solutions(geometry):
    tokens, selection, _ = stored_tokens(slice(0, 60))
    problem = MarginProblem.from_selection(tokens, selection)
    _, gap = by_one_method(solve_by_linear_programming, problem, geometry)
    assert gap.max() <= 1e-12


@BOTH
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_every_method_alone_is_exact(method, geometry):
    problem = random_problem(5, 5, 4, 5, seed=3)
    W, gap = by_one_method(method, problem, geometry)
    assert gap.max() <= 1e-12
    expected = [smallest_norm(one, geometry) for one in problem]
    np.testing.assert_allclose(geometry.norm(W), expected, rtol=1e-9)


@given(st.integers(0, 10**6))
def test_one_constraint_has_a_closed_form(seed):
    rng = np.random.default_rng(seed)
    d, e = rng.integers(1, 6, size=2)
    a, b, c = rng.normal(size=d), rng.normal(size=e), rng.exponential()
    sizes = np.abs(np.outer(a, b))
    problem = MarginProblem(a[None], b[None], c)
    best = np.unravel_index(sizes.argmax(), sizes.shape)
    expected = np.zeros((d, e))
    expected[best] = c / np.outer(a, b)[best]
    np.testing.assert_allclose(solve(problem, SUM).W, expected, rtol=1e-12, atol=1e-12 * c)
    expected = np.sign(np.outer(a, b)) * c / sizes.sum()
    np.testing.assert_allclose(solve(problem, LARGEST).W, expected, rtol=1e-12)


@BOTH
def test_coordinates_may_be_permuted_and_turned_around_but_not_rotated(geometry):
    problem = random_problem(1, 4, 4, 5, seed=2)[0]
    rng = np.random.default_rng(0)
    solution = solve(problem, geometry)
    order, signs = rng.permutation(5), rng.choice([-1.0, 1.0], size=5)
    turned = solve(MarginProblem(problem.left[:, order] * signs, problem.right), geometry)
    assert turned.norm == pytest.approx(solution.norm, rel=1e-12)
    np.testing.assert_allclose(turned.W, solution.W[order] * signs[:, None], atol=1e-10)
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    rotated = solve(MarginProblem(problem.left @ rotation, problem.right), geometry)
    assert abs(rotated.norm / solution.norm - 1) > 1e-3


@BOTH
@given(st.integers(0, 10**6), st.sampled_from([(12, 3), (40, 3), (30, 5), (6, 2)]))
def test_ties_and_points_where_many_constraints_meet(geometry, seed, size):
    problem = integer_problem(seed, *size)
    solution = solve(problem, geometry)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(smallest_norm(problem, geometry), rel=1e-8, abs=1e-9)


@BOTH
def test_repeated_constraints_change_nothing(geometry):
    problem = random_problem(20, 4, 4, 6, seed=5)
    rng = np.random.default_rng(0)
    copies = np.concatenate([np.arange(12), rng.integers(0, 12, size=15)])
    repeated = MarginProblem(problem.left[:, copies], problem.right[:, copies])
    twice = np.concatenate([np.arange(12), np.arange(12)])
    equalities = MarginProblem(problem.left[:, twice], problem.right[:, twice], equality=True)
    once = MarginProblem(problem.left, problem.right, equality=True)
    for many, few in ((repeated, problem), (equalities, once)):
        solution = solve(many, geometry)
        assert set(solution.status) == {Status.OPTIMAL}
        np.testing.assert_allclose(solution.norm, solve(few, geometry).norm, rtol=1e-9)


@BOTH
def test_more_constraints_than_entries(geometry):
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(4, 90, 4)), rng.normal(size=(4, 90, 3))
    margins = np.einsum("imd,de,ime->im", left, rng.normal(size=(4, 3)), right)
    problem = MarginProblem(np.sign(margins)[..., None] * left, right)
    solution = solve(problem, geometry)
    assert solution.gap.max() <= 1e-9
    expected = [smallest_norm(one, geometry) for one in problem]
    np.testing.assert_allclose(solution.value, expected, rtol=1e-7)


@BOTH
@pytest.mark.parametrize("margin", [1e-4, 1e-6])
def test_close_to_infeasible(geometry, margin):
    solutions = solve([thin_problem(margin, seed) for seed in range(6)], geometry)
    assert max(solution.gap for solution in solutions) <= 1e-9


@BOTH
def test_units_do_not_matter(geometry):
    problem = random_problem(3, 4, 4, 5, seed=7)
    plain = solve(problem, geometry)
    for a, b, c in ((2.0**400, 2.0**-380, 1.0), (2.0**-300, 2.0**-300, 2.0**-20)):
        other = solve(MarginProblem(a * problem.left, b * problem.right, c), geometry)
        np.testing.assert_allclose(other.W * (a * b / c), plain.W, rtol=1e-12, atol=1e-13)
        assert other.gap.max() <= 1e-12


@BOTH
def test_what_is_absent_or_unsolved_touches_nothing(geometry):
    problem = random_problem(4, 4, 4, 5, seed=8)
    present = np.ones((4, 12), dtype=bool)
    present[1, ::3] = False
    few = solve(MarginProblem(problem.left, problem.right, present=present), geometry)
    alone = solve(
        MarginProblem(problem.left[1, present[1]], problem.right[1, present[1]]), geometry
    )
    assert few.norm[1] == pytest.approx(alone.norm, rel=1e-12)
    assert not few.multipliers[1, ~present[1]].any()

    scaled, start = ScaledConstraints.of(problem), solve(problem)
    W, multipliers = scaled.scale(start.W, start.multipliers)
    W[2] = np.nan
    for method in METHODS:
        found, x = method(Task(scaled, geometry, 1e-9, W, multipliers))
        assert np.isnan(found[2]).all() and not x[2].any()
        norms = geometry.norm(scaled.restore(found, x)[0])[[0, 1, 3]]
        np.testing.assert_allclose(norms, solve(problem, geometry).norm[[0, 1, 3]], rtol=1e-9)


@BOTH
def test_infeasible_problems_are_told_apart(geometry):
    left = np.array([[[1.0, 2.0], [-1.0, -2.0]], [[1.0, 2.0], [1.0, -2.0]]])
    solution = solve(MarginProblem(left, np.ones((2, 2, 1))), geometry)
    assert list(solution.status) == [Status.INFEASIBLE, Status.OPTIMAL]
    assert solution.norm[1] == pytest.approx(1.0)


@BOTH
def test_a_loose_tolerance_is_kept_and_a_tight_one_reached(geometry):
    problem = random_problem(10, 4, 4, 6, seed=9)
    for tolerance in (1e-2, 1e-5, 1e-12):
        solution = solve(problem, geometry, tolerance=tolerance)
        assert set(solution.status) == {Status.OPTIMAL}
        assert solution.gap.max() <= tolerance


@BOTH
def test_bounds_of_very_different_sizes(geometry):
    problem = random_problem(20, 4, 5, 6, seed=11)
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-3, 4, size=(2, 20, 16))
    solution = solve(
        MarginProblem(problem.left * sizes[0, ..., None], problem.right, sizes[1]), geometry
    )
    assert set(solution.status) == {Status.OPTIMAL}
    assert solution.gap.max() <= 1e-11
