"""The pieces of the solver for many constraints, against the dense matrices they stand for."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.geometry import get_geometry
from attractor.margin import MarginProblem
from attractor.margin.large.conjugate_gradients import FreeSystem
from attractor.margin.large.groups import GroupedConstraints
from attractor.margin.large.proximal_points import proximal_point

seeds = st.integers(0, 2**20)
norms = st.sampled_from(
    [
        *"nuclear spectral l_1 l_inf l_1.1 l_1.5 l_3 l_10 schatten_1.5 schatten_4".split(),
        *("schatten_1.1", "max(frobenius[: by 1])", "max(l_1[: by 1])", "sum(frobenius[: by 1])"),
    ]
)
in_blocks = st.sampled_from(
    [
        "max(2 spectral[0:2], l_3[2:])",
        "max(nuclear[0:2], 0.5 frobenius[2:, 0:1], l_1[2:, 1:])",
        "max(l_1.5[0:1], l_inf[1:2], schatten_3[2:])",
        "sum(2 spectral[0:2], l_3[2:])",
    ]
)


def grouped(rng, sizes, d=4, e=3):
    """Constraints of which as many as each size share their b."""
    right = np.repeat(rng.normal(size=(len(sizes), e)), sizes, axis=0)
    return rng.normal(size=(len(right), d)), right


@pytest.mark.parametrize(
    "sizes", [[3, 3, 3], [1, 4, 2, 2], [300], [1] * 40, [5], [2] * 20 + [7, 1]], ids=str
)
def test_groups_multiply_as_the_gram_matrix_does(sizes):
    rng = np.random.default_rng(0)
    left, right = grouped(rng, sizes)
    problem = MarginProblem(left, right)
    constraints, x = GroupedConstraints.of(left, right), rng.normal(size=len(left))
    np.testing.assert_allclose(constraints.gram_times(x), problem.gram() @ x, atol=1e-10)
    W = problem.apply_adjoint(x)
    np.testing.assert_allclose(constraints.combine(x), W, atol=1e-11)
    np.testing.assert_allclose(constraints.margins(W), problem.margins(W), atol=1e-9)


def test_constraints_that_share_nothing_are_groups_of_one():
    left, right = grouped(np.random.default_rng(0), [4, 4])
    order = [0, 4, 1, 5, 2, 6, 3, 7]
    assert len(GroupedConstraints.of(left, right).right) == 2
    assert len(GroupedConstraints.of(left[order], right[order]).right) == 8


def test_choosing_constraints_drops_empty_groups():
    rng = np.random.default_rng(0)
    left, right = grouped(rng, [3, 2, 4])
    chosen = np.array([True, False, True, False, False, True, True, False, True])
    some, x = GroupedConstraints.of(left, right).choose(chosen), rng.normal(size=5)
    gram = MarginProblem(left[chosen], right[chosen]).gram()
    np.testing.assert_allclose(some.gram_times(x), gram @ x, atol=1e-12)
    assert len(some.right) == 2


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_free_systems_are_solved_to_rounding(share):
    rng = np.random.default_rng(0)
    left, right = grouped(rng, [6] * 20, d=12, e=12)
    left[::6] = left[1::6] + 1e-6 * left[::6]  # near duplicates, which plain iterations feel
    free = rng.random(len(left)) < share
    b, delta = rng.normal(size=len(left)), 1e-7
    system = FreeSystem(GroupedConstraints.of(left, right), free, delta)
    x, residual = system.solve(b, np.zeros_like(b), reduction=1e-10)
    gram = MarginProblem(left, right).gram()[np.ix_(free, free)]
    image = gram @ x[free] + delta * x[free]
    assert np.abs(image - b[free]).max() < 1e-7 * np.abs(x).max()
    assert residual < 1e-8
    assert not x[~free].any()


@given(seeds, norms, st.sampled_from([(4, 4), (5, 3), (3, 6), (1, 4), (1, 1)]))
def test_proximal_points_satisfy_their_optimality_conditions(seed, norm, shape):
    geometry, rng = get_geometry(norm), np.random.default_rng(seed)
    Z, tau = rng.normal(size=shape), 10.0 ** rng.uniform(-2, 1)
    point = proximal_point(Z, tau, geometry)
    assert_proximal(Z, tau, point, geometry)


@given(seeds, in_blocks, st.sampled_from([(4, 4), (5, 3), (3, 6)]))
def test_proximal_points_of_blocks_satisfy_them(seed, norm, shape):
    geometry, rng = get_geometry(norm), np.random.default_rng(seed)
    Z, tau = rng.normal(size=shape), 10.0 ** rng.uniform(-2, 1)
    assert_proximal(Z, tau, proximal_point(Z, tau, geometry), geometry)


def assert_proximal(Z, tau, point, geometry):
    pull = (Z - point.W) / tau  # a subgradient of the norm at W, if W is right
    if not point.W.any():
        assert geometry.dual_norm(pull) <= 1 + 1e-9
        return
    assert geometry.dual_norm(pull) == pytest.approx(1, abs=1e-7)
    assert (pull * point.W).sum() == pytest.approx(geometry.norm(point.W), rel=1e-7)
    assert point.norm == pytest.approx(geometry.norm(point.W))


@given(seeds, norms | in_blocks, st.sampled_from([(4, 4), (5, 3), (3, 6)]))
def test_proximal_derivatives_agree_with_differences(seed, norm, shape):
    geometry, rng = get_geometry(norm), np.random.default_rng(seed)
    Z, H = rng.normal(size=shape), rng.normal(size=shape)
    point = proximal_point(Z, 0.5, geometry)

    def slope(step):
        ahead, behind = (proximal_point(Z + s * H, 0.5, geometry).W for s in (step, -step))
        return (ahead - behind) / (2 * step)

    coarse, fine = slope(2e-6), slope(1e-6)
    smooth = np.abs(coarse - fine).max() < 1e-6  # no kink within the step
    if smooth:
        np.testing.assert_allclose(point.derivative(H), fine, atol=3e-5)


def test_proximal_derivatives_hold_where_singular_values_repeat():
    point = proximal_point(2 * np.eye(3), 0.5, get_geometry("nuclear"))
    H = np.arange(9.0).reshape(3, 3)
    # Symmetric directions move W as Z moves; skew ones turn it, and shrink with it.
    even, odd = (H + H.T) / 2, (H - H.T) / 2
    np.testing.assert_allclose(point.derivative(H), even + 0.75 * odd, atol=1e-12)
