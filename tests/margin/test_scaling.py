import warnings

import numpy as np
import pytest

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.support.errors import Status

GEOMETRIES = [
    Frobenius(), Lp(1), Lp(1.5), Lp(3), Lp(np.inf), Nuclear(), Spectral(), Schatten(1.5)
]  # fmt: skip


def test_absent_slots_are_zero_whatever_they_held(rng):
    left, right = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3))
    present = np.array([[True, False, True, True], [False, True, True, False]])
    scaled = ScaledConstraints.of(MarginProblem(left, right, present=present))
    for array in (scaled.left, scaled.right, scaled.bounds, scaled.norms):
        assert (array[~present] == 0).all()
        assert (array[present] != 0).any(axis=-1).all()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("equality", [True, False])
def test_what_absent_slots_hold_does_not_matter(rng, geometry, equality):
    left, right = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 4))
    present = np.array([[True, False, True, True, False], [True] * 5])
    held = MarginProblem(left, right, 1.0, equality, present)
    solution = solve(held, geometry)
    for i in range(2):
        kept = present[i]
        alone = solve(MarginProblem(left[i, kept], right[i, kept], 1.0, equality), geometry)
        assert solution.status[i] is alone.status
        np.testing.assert_allclose(solution.norm[i], alone.norm, rtol=3e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_no_bound_is_lost_beside_one_of_another_size(geometry):
    both = MarginProblem(np.eye(2), np.ones((2, 1)), [1e300, 1e-300])
    W = solve(both, geometry).W
    assert (W[:, 0] >= [1e300 * (1 - 1e-9), 1e-300]).all()
    left = [[1.0, 0], [0, 1], [0, -1]]
    contradictory = MarginProblem(left, np.ones((3, 1)), [1e300, 1e-300, 1e-300])
    assert solve(contradictory, geometry).status is not Status.OPTIMAL
    slack = solve(MarginProblem(np.eye(2), np.ones((2, 1)), [1e-20, -1e307]), geometry)
    assert slack.value == pytest.approx(1e-20, rel=1e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("bound", [-1e4, -1e9, -1e200])
def test_bounds_far_below_all_others_change_nothing(geometry, bound):
    rng = np.random.default_rng(1)
    a, b, target = rng.normal(size=(8, 4)), rng.normal(size=(8, 3)), rng.normal(size=(4, 3))
    margins = np.einsum("jd,de,je->j", a, target, b)
    equality = np.arange(8) < 2
    bounds = np.where(equality, margins, margins - rng.exponential(size=8))
    present = np.arange(8) != 5
    without = solve(MarginProblem(a, b, bounds, equality, present), geometry)
    bounds[5] = bound
    solution = solve(MarginProblem(a, b, bounds, equality), geometry)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(without.value, rel=2e-9)
    assert solution.multipliers[5] == 0


def test_a_constraint_that_says_nothing_changes_nothing():
    rng = np.random.default_rng(0)
    a, b = 1e8 * rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
    a[-1] = 0
    vacuous = MarginProblem(a, b, [1.0, 1, 1, 1, -1])
    for geometry in GEOMETRIES:
        expected = solve(MarginProblem(a[:-1], b[:-1]), geometry).value
        assert solve(vacuous, geometry).value == pytest.approx(expected, rel=2e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_a_solution_beyond_floating_point_is_none_but_has_a_bound(geometry):
    problem = MarginProblem(1e-160 * np.eye(2), 1e-120 * np.eye(2), 1e40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve(problem, geometry)
        assert solution.status is Status.STOPPED_EARLY
        assert np.isnan(solution.W).all()
        assert 1e308 < solution.dual_value < np.inf
        assert solution.gap == np.inf
        assert "No answer was certified" in repr(solution)
        assert solution.uniqueness == "not known"


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_solution_below_floating_point_is_none(geometry, side):
    left = 1e140 * np.array([[1.0, 0], [side, 1]])
    problem = MarginProblem(left, 1e120 * np.ones((2, 1)), 1e-70)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve(problem, geometry)
    assert solution.status is Status.STOPPED_EARLY
    assert solution.value == np.inf


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_a_solution_beyond_floating_point_leaves_finite_multipliers_and_their_bound(rng, geometry):
    left = np.ldexp(np.abs(rng.normal(size=(4, 3))), -1040)  # W would have to be about 2^1040
    solution = solve(MarginProblem(left, np.ones((4, 1))), geometry)
    assert np.isnan(solution.W).all()
    assert np.isfinite(solution.multipliers).all()
    assert solution.multipliers.sum() == pytest.approx(1.0, rel=1e-6)
    assert solution.norm_lower_bound == np.finfo(np.float64).max
