import math

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.geometry import Frobenius, Lp

EXPONENTS = [1, 1.01, 1.1, 1.5, 1.75, 2, 3, 4, 8, 101.0, math.inf]
FINITE = [p for p in EXPONENTS if 1 < p < math.inf]


def exact(values, p):
    """The p-norm to fifty digits."""
    sizes = [abs(mpmath.mpf(float(v))) for v in np.ravel(values)]
    if p == mpmath.inf:
        return max(sizes)
    return sum(s**p for s in sizes) ** (1 / mpmath.mpf(p))


def conjugate(p):
    p = mpmath.mpf(p)
    return mpmath.inf if p == 1 else mpmath.mpf(1) if p == mpmath.inf else p / (p - 1)


def matrices(rng, d, e):
    yield rng.normal(size=(d, e))
    yield rng.normal(size=(d, e)) * np.logspace(0, -20, d)[:, None]
    yield np.where(rng.random((d, e)) < 2 / (d * e), 1e10, 1.0)
    yield np.ones((d, e))
    yield 1e300 * rng.normal(size=(d, e))
    yield 1e-300 * rng.normal(size=(d, e))


@pytest.mark.parametrize("p", EXPONENTS)
def test_norms_are_exact_within_the_rounding_promised(p):
    geometry = Lp(p)
    rng = np.random.default_rng(0)
    with mpmath.workdps(50):
        for shape in ((1, 1), (2, 3), (40, 1), (20, 30)):
            for W in matrices(rng, *shape):
                for norm, exponent in (
                    (geometry.norm, mpmath.mpf(p)),
                    (geometry.dual_norm, conjugate(p)),
                ):
                    truth = exact(W, exponent)
                    error = abs(mpmath.mpf(float(norm(W))) - truth) / truth
                    assert error <= geometry.norm_rounding(*shape)


def test_promised_rounding_stays_far_below_any_tolerance():
    for p in EXPONENTS:
        assert Lp(p).norm_rounding(10, 10) < 1e-13
        assert Lp(p).norm_rounding(4096, 4096) < 1e-11


@pytest.mark.parametrize("method", ["norm", "dual_norm", "steepest_descent_direction"])
@pytest.mark.parametrize("seed", range(3))
def test_two_is_frobenius_to_the_last_bit(method, seed):
    W = np.random.default_rng(seed).normal(size=(5, 7, 9))
    np.testing.assert_array_equal(getattr(Lp(2), method)(W), getattr(Frobenius(), method)(W))
    assert Lp(2).norm_rounding(7, 9) == Frobenius().norm_rounding(7, 9)
    assert Lp(2).distance_to_solution(3.0, 1e-5) == pytest.approx(
        Frobenius().distance_to_solution(3.0, 1e-5), rel=1e-15
    )
    assert Lp(2).mirror_map(W) is W


def test_sign_descent_and_coordinate_descent():
    G = np.array([[0.0, -3.0, 1e-300], [3.0, -2.0, 3.0]])
    np.testing.assert_array_equal(
        Lp(math.inf).steepest_descent_direction(G), [[0, -1, 1], [1, -1, 1]]
    )
    for library in (np, jnp):  # the first of several largest entries, in both
        D = Lp(1).steepest_descent_direction(library.asarray(G))
        np.testing.assert_array_equal(D, [[0, -1, 0], [0, 0, 0]])


def test_norms_of_gradients_in_single_precision_do_not_vanish():
    # |g|^11 of entries of 1e-6 is 1e-66, far below the least single.
    G = np.full((3, 4), 1e-6, np.float32)
    for library in (np, jnp):
        found = Lp(1.1).dual_norm(library.asarray(G))
        assert float(found) == pytest.approx(1e-6 * 12 ** (1 / 11), rel=1e-6)


@pytest.mark.parametrize("p", FINITE)
def test_mirror_map_is_the_gradient_of_the_potential(p):
    W = np.array([[2.0, -0.5], [0.0, 1.0], [-3.0, 1e-5]])
    image = Lp(p).mirror_map(W)
    with mpmath.workdps(60):
        for w, found in zip(W.ravel(), image.ravel(), strict=True):
            slope = mpmath.diff(lambda x: abs(x) ** p / p, mpmath.mpf(float(w))) if w else 0
            assert float(found) == pytest.approx(float(slope), rel=1e-14, abs=0)


@given(st.sampled_from([1.5, 1.75, 3.0, 1.1, 1.01]), st.floats(-45, 45), st.booleans())
def test_mirror_maps_return_wherever_floats_reach(p, exponent, negative):
    w = math.ldexp(-1.5 if negative else 1.5, round(3 * exponent))
    W = np.array([[w, 0.0, -w]])
    back = Lp(p).inverse_mirror_map(Lp(p).mirror_map(W))
    # Rounding of the image is magnified by 1 / (p - 1), that of the exponents by the logarithm.
    rtol = 2.3e-16 * (8 / min(p - 1, 1) + abs(math.log(abs(w))))
    np.testing.assert_allclose(back, W, rtol=rtol, atol=0)


def test_mirror_maps_close_to_one_at_the_ends_of_the_floats():
    geometry = Lp(1.01)
    W = np.array([[1e-307, -1e-200, 0.0, 1e300, 1.0]])
    image = geometry.mirror_map(W)
    assert (np.abs(image[W != 0]) > 8e-4).all()
    np.testing.assert_allclose(geometry.inverse_mirror_map(image), W, rtol=3e-14, atol=0)
    # Multipliers this small belong to weights that no float can hold: zero, and no harm done.
    np.testing.assert_array_equal(geometry.inverse_mirror_map(np.array([[5e-4, -5e-4]])), 0)


@given(st.integers(0, 2**20), st.sampled_from(FINITE))
def test_norm_of_the_image_is_a_power_of_the_norm(seed, p):
    W = np.random.default_rng(seed).normal(size=(3, 4))
    geometry = Lp(p)
    image = geometry.mirror_map(W)
    power = geometry.norm(W) ** (p - 1)
    assert geometry.dual_norm(image) == pytest.approx(power, rel=1e-12)
    assert (image * W).sum() == pytest.approx(power * geometry.norm(W), rel=1e-12)


def test_exponents_near_the_ends_approach_the_ends():
    W = np.random.default_rng(0).normal(size=(3, 4))
    assert Lp(1 + 1e-12).norm(W) == pytest.approx(Lp(1).norm(W), rel=1e-10)
    assert Lp(1 + 1e-12).dual_norm(W) == pytest.approx(Lp(1).dual_norm(W), rel=1e-10)
    assert Lp(1e12).norm(W) == pytest.approx(Lp(math.inf).norm(W), rel=1e-10)
    assert Lp(1e12).dual_norm(W) == pytest.approx(Lp(math.inf).dual_norm(W), rel=1e-10)
    np.testing.assert_allclose(Lp(1e12).steepest_descent_direction(W), np.sign(W), rtol=1e-10)
