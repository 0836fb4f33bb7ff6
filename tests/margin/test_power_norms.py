"""Margin problems in the l_p norms of entries and singular values, 1 < p < inf."""

import mpmath as mp
import numpy as np
import pytest
from conic_oracle import conic_value, entrywise, random_small_problem, squared_schatten_4
from hypothesis import given, settings, strategies as st
from margin_examples import random_problem, stored_tokens, thin_problem

from attractor.geometry import Frobenius, Lp, Schatten
from attractor.margin import MarginProblem, solve
from attractor.margin.algorithms import solve_in_frobenius
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import certify_scaled
from attractor.margin.methods import Task
from attractor.margin.smooth.methods import solve_by_aggressive_newton, solve_by_conservative_newton
from attractor.support.errors import Status

EXPONENTS = (1.01, 1.1, 1.5, 1.75, 3, 4, 8)
GEOMETRIES = [kind(p) for kind in (Lp, Schatten) for p in EXPONENTS]
few = settings(max_examples=8)
seeds = st.integers(0, 2**20)
geometries = st.sampled_from(GEOMETRIES)


def stored_problem(instances=slice(0, 10)):
    tokens, selection, _ = stored_tokens(instances)
    return MarginProblem.from_selection(tokens, selection)


def assert_certified(solution, gap=1e-9):
    assert (np.asarray(solution.status) == Status.OPTIMAL).all()
    assert np.max(solution.gap) <= gap


@pytest.mark.parametrize(
    ("p", "norm"), [(1.1, 10.35369674), (1.75, 3.45949212), (3, 1.41786895), (4, 1.02975883)]
)
def test_known_norms(p, norm):
    solution = solve(stored_problem(slice(1, 2)), Lp(p))
    assert solution.value[0] == pytest.approx(norm, rel=1e-8)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("shape", [(6, 8, 10), (5, 5, 5), (15, 5, 5)])
def test_every_feasible_instance_is_certified(geometry, shape):
    problem = random_problem(6, *shape, seed=3)
    feasible = np.flatnonzero(solve(problem).status == Status.OPTIMAL)
    assert feasible.size
    assert_certified(solve(problem[feasible], geometry))


def norm_in_high_precision(geometry, Z, exponent):
    if isinstance(geometry, Schatten):
        sizes = list(mp.svd_r(Z, compute_uv=False))
    else:
        sizes = [abs(Z[i, j]) for i in range(Z.rows) for j in range(Z.cols)]
    return mp.fsum(size**exponent for size in sizes) ** (1 / exponent)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_the_gap_holds_in_high_precision(geometry):
    problem = stored_problem(slice(2, 3))[0]
    solution = solve(problem, geometry)
    multipliers = np.maximum(solution.multipliers, 0.0)
    with mp.workdps(40):
        W, M = mp.matrix(solution.W.tolist()), mp.matrix(*problem.shape)
        margins = []
        for x, a, b in zip(multipliers, problem.left, problem.right, strict=True):
            a, b = mp.matrix(a.tolist()), mp.matrix(b.tolist())
            margins.append((a.T * W * b)[0])
            M += mp.mpf(x) * a * b.T
        p = mp.mpf(geometry.p)
        upper = norm_in_high_precision(geometry, W, p) / min(margins)
        lower = mp.fsum(multipliers) / norm_in_high_precision(geometry, M, p / (p - 1))
        gap = float((upper - lower) / upper)
    assert 0 <= gap <= solution.gap
    assert solution.gap <= 1e-9


@pytest.mark.parametrize("p", [1.1, 1.5, 3, 4, 8])
@pytest.mark.parametrize("seed", [3, 4, 5, 6, 7])  # kinds with general bounds and equalities
def test_agrees_with_an_interior_point_solver(p, seed):
    problem = random_small_problem(16 + seed)
    solution = solve(problem, Lp(p))
    assert_certified(solution)
    assert solution.value == pytest.approx(conic_value(problem, entrywise(p)), rel=1e-7, abs=1e-8)


def test_more_constraints_than_entries_agree_with_an_interior_point_solver():
    problem = random_problem(8, 15, 5, 5, seed=1)
    index = int(np.flatnonzero(solve(problem).status == Status.OPTIMAL)[0])
    one = problem[index]
    assert solve(one, Lp(1.5)).value == pytest.approx(conic_value(one, entrywise(1.5)), rel=1e-7)
    expected = conic_value(one, squared_schatten_4) ** 0.5
    assert solve(one, Schatten(4)).value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("kind", [Lp, Schatten])
def test_values_fall_and_are_continuous_in_the_exponent(kind):
    problem = stored_problem(slice(0, 3))
    exponents = (1.01, 1.2, 1.6, 2 - 1e-7, 2, 2 + 1e-7, 2.5, 5, 12, 30)
    values = np.array([solve(problem, kind(p)).value for p in exponents])
    assert (np.diff(values, axis=0) < 1e-6).all()
    np.testing.assert_allclose(values[[3, 5]], values[[4, 4]], rtol=1e-6)


@given(seeds, geometries)
@few
def test_repeated_constraints_and_their_order_change_nothing(seed, geometry):
    rng = np.random.default_rng(seed)
    problem = random_problem(3, 4, 4, 4, seed)
    more = rng.permutation(np.concatenate([np.arange(12), rng.integers(0, 12, size=8)]))
    repeated = MarginProblem(problem.left[:, more], problem.right[:, more])
    solution = solve(repeated, geometry)
    assert_certified(solution)
    np.testing.assert_allclose(solution.value, solve(problem, geometry).value, rtol=2e-9)


@given(seeds, geometries, st.sampled_from([1e-150, 1e-4, 1e150]))
@few
def test_scales_change_nothing(seed, geometry, scale):
    rng = np.random.default_rng(seed)
    problem = random_problem(2, 4, 4, 5, seed)
    rows = 10.0 ** rng.uniform(-12, 12, size=(2, 12))  # the same constraints in other units
    other = MarginProblem(problem.left * rows[..., None] * scale, problem.right, rows)
    solution = solve(other, geometry)
    assert_certified(solution)
    np.testing.assert_allclose(solution.value * scale, solve(problem, geometry).value, rtol=2e-9)


@pytest.mark.long
@given(seeds, st.sampled_from(EXPONENTS))
@few
def test_symmetries_of_the_norms(seed, p):
    rng = np.random.default_rng(seed)
    problem = random_problem(2, 4, 4, 5, seed)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    signed = np.eye(5)[rng.permutation(5)] * rng.choice([-1, 1], size=5)
    for geometry, matrix in ((Schatten(p), turn), (Lp(p), signed)):
        turned = MarginProblem(problem.left @ matrix.T, problem.right)
        one, other = solve(problem, geometry), solve(turned, geometry)
        np.testing.assert_allclose(other.value, one.value, rtol=2e-9)
        swapped = MarginProblem(problem.right, problem.left)
        np.testing.assert_allclose(solve(swapped, geometry).value, one.value, rtol=2e-9)


@given(seeds, geometries)
@few
def test_an_instance_alone_is_the_instance_in_its_batch(seed, geometry):
    problem = random_problem(4, 5, 3, 5, seed)
    together = solve(problem, geometry)
    for i, alone in enumerate(solve(list(problem), geometry)):
        assert alone.status is together.status[i]
        np.testing.assert_allclose(alone.value, together.value[i], rtol=2e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_one_constraint_has_a_closed_form(geometry):
    # <a b^T, W> >= 1 costs 1 / ||a b^T||_dual.
    a, b = np.array([[3.0, -4.0, 0.0]]), np.array([[0.0, 2.0]])
    solution = solve(MarginProblem(a, b), geometry)
    assert_certified(solution)
    assert solution.value == pytest.approx(1 / geometry.dual_norm(a.T @ b), rel=1e-10)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_equalities_alone(geometry):
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(5, 4)), rng.normal(size=(5, 3)), rng.normal(size=5)
    once = solve(MarginProblem(a, b, c, True), geometry)
    assert_certified(once)
    assert once.equality_residual < 1e-13
    # The same with every equality given three times over, once with the other sign.
    a, b, c = np.vstack([a, a, -a]), np.vstack([b, b, b]), np.concatenate([c, c, -c])
    redundant = solve(MarginProblem(a, b, c, True), geometry)
    assert_certified(redundant)
    assert redundant.value == pytest.approx(once.value, rel=2e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_inequalities_that_leave_no_interior(geometry):
    # a^T W b >= 0 and <= 0 together are an equality.
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
    c, equality = np.r_[np.ones(6), 0.0], np.arange(7) == 6
    held = solve(MarginProblem(a, b, c, equality), geometry)
    pinned = MarginProblem(np.vstack([a, -a[6:]]), np.vstack([b, b[6:]]), np.r_[c, 0.0])
    solution = solve(pinned, geometry)
    assert_certified(held)
    assert_certified(solution)
    assert solution.value == pytest.approx(held.value, rel=2e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_constraints_that_cannot_matter_are_let_be(geometry):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    plain = solve(MarginProblem(a, b), geometry)
    more = MarginProblem(
        np.vstack([a, 0 * a[:2], a[:1]]), np.vstack([b, b[:2], b[:1]]), np.r_[np.ones(6), 0, -1, -3]
    )
    solution = solve(more, geometry)
    assert_certified(solution)
    assert solution.value == pytest.approx(plain.value, rel=2e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("margin", [1e-2, 1e-3, 1e-4, 1e-5])
def test_thin_margins_are_certified(geometry, margin):
    assert_certified(solve(thin_problem(margin, 0), geometry))


@pytest.mark.parametrize("kind", [Lp, Schatten])
@pytest.mark.parametrize("p", [1.1, 4])
def test_much_tighter_tolerances_are_reached(kind, p):
    assert_certified(solve(stored_problem(slice(0, 5)), kind(p), tolerance=1e-12), gap=1e-12)


@pytest.mark.parametrize("geometry", [Lp(1.5), Lp(4), Schatten(1.5), Schatten(4)], ids=str)
def test_hundreds_of_constraints(geometry):
    problem = random_problem(1, 20, 20, 50, seed=0)
    assert problem.constraints.tolist() == [380]
    assert_certified(solve(problem, geometry))


def started(problem, geometry):
    """A task with the Frobenius solution to start from."""
    scaled = ScaledConstraints.of(problem)
    empty = np.full((len(problem), *problem.shape), np.nan), np.zeros(problem.bounds.shape)
    W, multipliers = solve_in_frobenius(Task(scaled, geometry, 1e-9, *empty))
    return Task(scaled, geometry, 1e-9, W, multipliers)


def gap_of(task, W, multipliers):
    return certify_scaled(task.scaled, W, multipliers, task.geometry).gap


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("method", [solve_by_aggressive_newton, solve_by_conservative_newton])
def test_either_method_does_it_alone(geometry, method):
    task = started(stored_problem(), geometry)
    assert gap_of(task, *method(task)).max() <= 1e-9


@pytest.mark.parametrize("geometry", [Lp(1.5), Lp(3), Schatten(1.5), Schatten(3)], ids=str)
def test_instances_without_a_start_get_no_answer_and_harm_no_other(geometry):
    task = started(stored_problem(slice(0, 4)), geometry)
    expected, _ = solve_by_aggressive_newton(task)
    task.W[2], task.multipliers[2] = np.nan, 0.0
    W, multipliers = solve_by_aggressive_newton(task)
    assert np.isnan(W[2]).all()
    assert not multipliers[2].any()
    others = [0, 1, 3]
    np.testing.assert_array_equal(W[others], expected[others])


@pytest.mark.parametrize("geometry", [Lp(1.5), Lp(3), Schatten(1.5), Schatten(3)], ids=str)
def test_a_start_without_multipliers_will_do(geometry):
    task = started(stored_problem(slice(0, 4)), geometry)
    task.multipliers[:] = 0.0
    assert gap_of(task, *solve_by_aggressive_newton(task)).max() <= 1e-9


def test_exponent_two_is_frobenius():
    problem = stored_problem(slice(0, 3))
    expected = solve(problem, Frobenius()).W
    for geometry in (Lp(2), Schatten(2)):
        np.testing.assert_array_equal(solve(problem, geometry).W, expected)
