"""Corrections that make a matrix meet its constraints."""

import numpy as np

from attractor.margin import MarginProblem
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.correction import meet_constraints


def scaled_problem(left, right, bounds, equality):
    return ScaledConstraints.of(MarginProblem(left, right, bounds, equality).batched())


def random_rows(seed, m=6, d=4, e=3):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(m, d)), rng.normal(size=(m, e))


def test_what_scaling_cures_is_left_alone():
    rng, a, b = random_rows(0)
    scaled = scaled_problem(a, b, 1.0, False)
    W = rng.normal(size=(1, 4, 3))
    assert meet_constraints(scaled, W) is W


def test_equalities_hold_to_rounding_by_the_least_change():
    rng, a, b = random_rows(1)
    scaled = scaled_problem(a, b, rng.normal(size=6), True)
    W = rng.normal(size=(1, 4, 3))
    met = meet_constraints(scaled, W)
    np.testing.assert_allclose(scaled.margins(met), scaled.bounds, atol=1e-15)
    rows = (scaled.left[0, :, :, None] * scaled.right[0, :, None, :]).reshape(6, 12)
    least = np.linalg.pinv(rows) @ (scaled.bounds[0] - rows @ W.ravel())
    np.testing.assert_allclose((met - W).ravel(), least, atol=1e-12)


def test_repeated_equalities_are_no_obstacle():
    rng, a, b = random_rows(2)
    c = rng.normal(size=6)
    scaled = scaled_problem(np.vstack([a, -a]), np.vstack([b, b]), np.r_[c, -c], True)
    met = meet_constraints(scaled, rng.normal(size=(1, 4, 3)))
    np.testing.assert_allclose(scaled.margins(met), scaled.bounds, atol=1e-14)


def test_inequalities_are_mended_where_they_fall_short_only():
    rng, a, b = random_rows(3)
    bounds = np.array([1.0, 0.0, -1.0, 0.0, 1.0, -1.0])
    scaled = scaled_problem(a, b, bounds, False)
    W = 3 * rng.normal(size=(4, 3))
    many = scaled.choose([0, 0])
    loose = np.abs(scaled.margins(W[None]))  # a matrix that is feasible stays as it is
    signs = np.where(scaled.margins(W[None]) >= 0, 1.0, -1.0)
    turned = scaled_problem(a * signs.T, b, -loose[0], False)
    np.testing.assert_array_equal(meet_constraints(turned, W[None]), W[None])
    met = meet_constraints(many, np.stack([W, W + 1e-9]))
    assert (many.margins(met) - many.bounds).min() >= -1e-14


def test_active_inequalities_are_brought_to_their_bounds():
    rng, a, b = random_rows(4)
    scaled = scaled_problem(a, b, 1.0, False)
    active = np.array([[True, True, False, False, True, False]])
    met = meet_constraints(scaled, rng.normal(size=(1, 4, 3)), active)
    np.testing.assert_allclose(scaled.margins(met)[active], scaled.bounds[active], atol=1e-15)
