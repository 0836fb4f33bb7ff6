import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor.analysis import directional_bregman_divergence
from attractor.geometry import Frobenius, Geometry, Lp, Nuclear, Schatten, Spectral

GEOMETRIES = [Frobenius(), *(Lp(p) for p in (1.1, 1.5, 3, 8)), *(Schatten(p) for p in (1.5, 3))]


def divergence(W, solution, geometry):
    return directional_bregman_divergence(np.asarray(W)[None], np.asarray(solution), geometry)[0]


def exact(W, solution, geometry):
    """``1 - <grad psi(b), a>`` in 80 digits."""
    with mpmath.workdps(80):
        p = mpmath.mpf(getattr(geometry, "p", 2.0))
        b, a = (mpmath.matrix(np.asarray(matrix).tolist()) for matrix in (W, solution))
        if isinstance(geometry, Schatten):
            U, s, V = mpmath.svd_r(b)
            norm = sum(x**p for x in s) ** (1 / p)
            slope = U * mpmath.diag([(x / norm) ** (p - 1) for x in s]) * V
            a = a / sum(x**p for x in mpmath.svd_r(a, compute_uv=False)) ** (1 / p)
        else:
            norm = sum(abs(x) ** p for x in b) ** (1 / p)
            slope = b.apply(lambda x: mpmath.sign(x) * (abs(x) / norm) ** (p - 1))
            a = a / sum(abs(x) ** p for x in a) ** (1 / p)
        return 1 - sum(x * y for x, y in zip(slope, a, strict=True))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (1, 4)])
def test_every_digit_is_right_down_to_1e_30(geometry, shape, rng):
    solution = rng.normal(size=shape)
    smallest = 1.0
    for distance in (3, 0.3, 1e-2, 1e-4, 1e-8, 1e-12, 1e-14, 2e-15):
        W = 1e5 * (solution / np.linalg.norm(solution) + distance * rng.normal(size=shape))
        expected = exact(W, solution, geometry)
        error = abs(divergence(W, solution, geometry) - expected) / expected
        assert error < 1e-12, (distance, float(expected))
        smallest = min(smallest, float(expected))
    assert smallest < 1e-28


@given(
    p=st.floats(1.05, 8),
    size=st.floats(-20, 0),
    zeros=st.integers(0, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_entries_that_are_zero_lose_no_digit(p, size, zeros, seed):
    random = np.random.default_rng(seed)
    solution = random.normal(size=(2, 3))
    solution.flat[:zeros] = 0
    W = solution + 10**size * random.normal(size=(2, 3))
    W.flat[zeros // 2 : zeros] = 0
    if not (W != solution).any():
        return
    expected = exact(W, solution, Lp(p))
    found = divergence(W, solution, Lp(p))
    assert abs(found - expected) <= 1e-11 * expected + 1e-45


@pytest.mark.parametrize("p", [1.5, 3])
def test_a_solution_of_low_rank(p, rng):
    solution = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 4))
    unit = solution / np.linalg.norm(solution)
    for distance in (1, 1e-2, 1e-4, 1e-6, 1e-8):
        W = unit + distance * rng.normal(size=(5, 4))
        expected = exact(W, solution, Schatten(p))
        error = abs(divergence(W, solution, Schatten(p)) - expected) / expected
        assert error < 1e-13 + 1e-14 / distance, distance


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_it_is_between_0_and_2_and_knows_no_scale(geometry, rng):
    solution = rng.normal(size=(3, 4))
    W = rng.normal(size=(20, 3, 4))
    values = directional_bregman_divergence(W, solution, geometry)
    assert ((values > 0) & (values < 2)).all()
    scales = np.exp2(rng.integers(-900, 900, size=(20, 1, 1)))
    again = directional_bregman_divergence(W * scales, 2.0**-800 * solution, geometry)
    np.testing.assert_allclose(again, values, rtol=1e-13)
    assert divergence(-solution, solution, geometry) == pytest.approx(2, rel=1e-13)
    assert divergence(7 * solution, solution, geometry) < 1e-30


def test_with_p_2_it_is_one_minus_the_correlation(rng):
    W, solution = rng.normal(size=(2, 4, 5))
    cosine = np.sum(W * solution) / np.linalg.norm(W) / np.linalg.norm(solution)
    for geometry in (Frobenius(), Lp(2), Schatten(2)):
        assert divergence(W, solution, geometry) == pytest.approx(1 - cosine, rel=1e-13)


def test_entrywise_and_schatten_agree_on_diagonal_matrices(rng):
    W, solution = np.apply_along_axis(np.diag, 1, np.abs(rng.normal(size=(2, 4))))
    expected = divergence(W, solution, Lp(1.5))
    assert divergence(W, solution, Schatten(1.5)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("geometry", [Lp(1), Lp(np.inf), Nuclear(), Spectral()], ids=repr)
def test_norms_without_a_mirror_map_have_none(geometry):
    assert np.isnan(divergence(np.eye(2), np.ones((2, 2)), geometry))


def test_matrices_without_a_direction_have_none():
    W = np.stack([np.eye(2), np.zeros((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
    for geometry in (Lp(1.5), Schatten(1.5)):
        values = directional_bregman_divergence(W, np.ones((2, 2)), geometry)
        assert np.isnan(values).tolist() == [False, True, True, True]
        nothing = directional_bregman_divergence(W, np.zeros((2, 2)), geometry)
        assert np.isnan(nothing).all()


def test_a_geometry_of_the_user_uses_its_mirror_map(rng):
    class Weighted(Frobenius):
        """``psi = sum_ij c_i W_ij^2 / 2``."""

        name = "weighted"

        def norm(self, W):
            return np.sqrt((self.mirror_map(W) * W).sum((-1, -2)))

        def mirror_map(self, W):
            return W * np.array([[1.0], [4.0]])

    W, solution = rng.normal(size=(2, 2, 3))
    stretch = np.array([[1.0], [2.0]])
    expected = divergence(stretch * W, stretch * solution, Frobenius())
    assert isinstance(Weighted(), Geometry)
    assert divergence(W, solution, Weighted()) == pytest.approx(expected, rel=1e-12)
