from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from margin_examples import random_problem, thin_problem

from attractor.geometry import Frobenius, Lp
from attractor.margin import MarginProblem, solve
from attractor.margin.certificates.certificate import certify, proven_margins, rank_of
from attractor.support.errors import Status

seeds = st.integers(0, 2**20)


def certify_one(problem, W, multipliers):
    return certify(problem.batched(), W[None], multipliers[None], Frobenius())


def exact_optimum(problem, support):
    """The squared optimum, exactly, given the right support; checks that it is the right one."""
    rows = [[Fraction(float(x)) for x in row] for row in problem.left]
    scale = [Fraction(float(x)) for x in problem.right[:, 0]]
    rows = [[x * s for x in row] for row, s in zip(rows, scale, strict=True)]
    size = len(support)
    system = [
        [sum(x * y for x, y in zip(rows[i], rows[j], strict=True)) for j in support] + [Fraction(1)]
        for i in support
    ]
    for i in range(size):
        pivot = next(k for k in range(i, size) if system[k][i] != 0)
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [x / system[i][i] for x in system[i]]
        for k in range(size):
            if k != i and system[k][i] != 0:
                factor = system[k][i]
                system[k] = [x - factor * y for x, y in zip(system[k], system[i], strict=True)]
    multipliers = [row[-1] for row in system]
    assert min(multipliers) > 0
    w = [
        sum(x * rows[j][c] for x, j in zip(multipliers, support, strict=True))
        for c in range(len(rows[0]))
    ]
    assert all(sum(x * y for x, y in zip(row, w, strict=True)) >= 1 for row in rows)
    return sum(multipliers)


@pytest.mark.parametrize("margin", [1e-2, 1e-4, 1e-6, 1e-8])
def test_bounds_enclose_the_exact_optimum(margin):
    problem = thin_problem(margin, 0, m=16, d=5)
    solution = solve(problem)
    squared = exact_optimum(problem, np.flatnonzero(solution.multipliers > 0))
    with mpmath.workdps(60):
        optimum = mpmath.sqrt(mpmath.mpf(squared.numerator) / squared.denominator)
        assert mpmath.mpf(solution.dual_value) <= optimum <= mpmath.mpf(solution.value)
        true_gap = (mpmath.mpf(solution.value) - optimum) / mpmath.mpf(solution.value)
        assert true_gap <= solution.gap
    if margin >= 1e-6:
        assert solution.gap <= 1e-9


@given(seeds, st.booleans())
def test_weak_duality_for_any_matrix_and_multipliers(seed, general):
    rng = np.random.default_rng(seed)
    problem = random_problem(1, 4, 3, 5, seed)[0]
    if general:
        bounds, equality = rng.normal(size=8), rng.random(8) < 0.2
        target = rng.normal(size=(5, 5))
        margins = problem.margins(target)
        bounds = np.where(equality, margins, np.minimum(bounds, margins))
        problem = MarginProblem(problem.left, problem.right, bounds, equality)
        W = target
    else:
        W = solve(problem).W + 0.1 * rng.normal(size=(5, 5))
    multipliers = rng.exponential(size=8) * np.where(rng.random(8) < 0.5, 1, -1)
    certificate = certify_one(problem, W, multipliers)
    optimum = solve(problem)
    assert certificate.dual_value[0] <= optimum.value * (1 + 1e-12)
    if np.isfinite(certificate.gap[0]):
        assert certificate.value[0] >= optimum.dual_value * (1 - 1e-12)
        # However bad the multipliers, the gap is never below that to the true optimum.
        true_gap = (certificate.value[0] - optimum.value) / max(certificate.value[0], 1e-300)
        assert certificate.gap[0] >= true_gap - 1e-12


@given(seeds)
def test_moving_off_the_optimum_shows_in_the_gap(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(1, 4, 4, 5, seed)[0]
    solution = solve(problem)
    direction = rng.normal(size=(5, 5))
    step = 1e-3 * solution.norm / np.linalg.norm(direction)
    moved = certify_one(problem, solution.W + step * direction, solution.multipliers)
    assert solution.gap < 1e-11
    assert moved.gap[0] > 1e-7
    assert moved.kkt_residual[0] > 1e-7


def test_scaling_off_the_optimum_shows_in_the_gap_or_the_margin():
    problem = random_problem(1, 4, 4, 5)[0]
    solution = solve(problem)
    longer, shorter = (
        certify_one(problem, solution.W * factor, solution.multipliers) for factor in (1.1, 0.9)
    )
    assert longer.gap[0] > 0.05 and longer.violation[0] == 0
    # What bounds the optimum is the matrix scaled up, and it is told how far W is from that.
    assert shorter.gap[0] < 1e-12 and shorter.value[0] == pytest.approx(solution.norm, rel=1e-12)
    assert shorter.margin[0] == pytest.approx(0.9) and shorter.violation[0] > 0.09
    assert shorter.distance[0] == pytest.approx(0.1 * solution.norm)


def test_a_violated_equality_shows_in_the_gap():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    equality = np.arange(6) < 2
    problem = MarginProblem(a, b, np.where(equality, 0.0, 1.0), equality)
    solution = solve(problem)
    off = a[0][:, None] * b[0] * 1e-3
    moved = certify_one(problem, solution.W + off, solution.multipliers)
    assert moved.gap[0] > 1e-7
    assert moved.equality_residual[0] > 1e-5
    assert solution.equality_residual < 1e-13


def test_negative_multipliers_of_inequalities_prove_nothing():
    problem = MarginProblem(np.eye(2), np.ones((2, 1)), [1.0, -1.0])
    certificate = certify_one(problem, np.array([[1.0], [0.0]]), np.array([0.0, -5.0]))
    assert certificate.dual_value[0] == 0


def test_a_matrix_on_the_wrong_side_is_no_solution():
    problem = MarginProblem(np.eye(2), np.ones((2, 1)))
    certificate = certify_one(problem, np.array([[1.0], [-1.0]]), np.ones(2))
    assert certificate.value[0] == np.inf
    assert certificate.gap[0] == np.inf
    assert certificate.dual_value[0] == pytest.approx(np.sqrt(2))


def test_the_dual_value_does_not_depend_on_the_scale_of_multipliers():
    problem = random_problem(1, 3, 3, 4)[0]
    solution = solve(problem)
    for scale in (1e-200, 1e-5, 1e200):
        certificate = certify_one(problem, solution.W, solution.multipliers * scale)
        assert certificate.dual_value[0] == pytest.approx(solution.dual_value, rel=1e-13)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_certificates_survive_extreme_units(scale):
    problem = random_problem(1, 4, 4, 5)[0]
    extreme = MarginProblem(problem.left * scale, problem.right * scale)
    solution = solve(extreme)
    assert solution.status is Status.OPTIMAL
    assert solution.norm * scale * scale == pytest.approx(solve(problem).norm, rel=1e-12)
    assert solution.dual_norm == pytest.approx(1, rel=1e-12)
    assert solution.gap < 1e-11


def test_rank_counts_what_the_gap_proves():
    W = np.diag([1.0, 1e-3, 0.0])[None]
    value, near = np.linalg.norm(W, axis=(1, 2)), np.zeros(1)
    assert rank_of(W, value, np.array([1e-12]), near, Frobenius()).tolist() == [2]
    assert rank_of(W, value, np.array([1e-5]), near, Frobenius()).tolist() == [1]
    assert rank_of(W, np.array([np.inf]), np.array([np.inf]), near, Frobenius()).tolist() == [-1]


def test_the_value_is_of_a_matrix_that_meets_what_scaling_cannot_cure():
    problem = MarginProblem([[1.0], [-1.0]], [[1.0], [1.0]], [1.0, -1.5])
    multipliers = np.array([[1.0, 0.0]])
    short = certify(problem.batched(), np.array([[[1 - 1e-9]]]), multipliers, Frobenius())
    assert 1 <= short.value[0] <= 1 + 1e-14 and short.violation[0] == pytest.approx(1e-9, rel=1e-6)
    assert short.distance[0] == pytest.approx(1e-9, rel=1e-6)
    aside = certify(problem.batched(), np.array([[[1 + 1e-12]]]), multipliers, Frobenius())
    assert aside.gap[0] == pytest.approx(1e-12, rel=1e-2)
    third = MarginProblem([[1.0, 0], [0, 1], [0, -1]], np.ones((3, 1)), [1.0, -1, 0.5])
    W = np.array([[[1.0], [-0.5 + 1e-8]]])
    found = certify(third.batched(), W, np.array([[1.0, 0, 0]]), Lp(np.inf))
    assert 1 <= found.value[0] <= 1 + 1e-14 and found.distance[0] == pytest.approx(1e-8, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 2.0**400, 2.0**-400])
def test_proven_margins_are_below_the_exact_ones_however_much_cancels(scale):
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(2, 20, 5))
    W = rng.normal(size=(1, 5, 5))
    for j in range(20):  # all but a millionth of a millionth cancels
        left[j] -= (left[j] @ W[0] @ right[j]) * (1 - 1e-12) / (W[0] @ right[j])[0] * np.eye(5)[0]
    problem = MarginProblem(scale * left, right, present=np.arange(20) < 18).batched()
    (found,) = proven_margins(problem, W)
    for j in range(18):
        exact = sum(
            Fraction(scale * left[j, a]) * Fraction(W[0, a, b]) * Fraction(right[j, b])
            for a in range(5)
            for b in range(5)
        )
        size = Fraction(scale) * Fraction(1, 10**12)  # some roundings of products of norms
        assert exact - size <= Fraction(found[j]) <= exact
    assert np.isnan(found[18:]).all()
