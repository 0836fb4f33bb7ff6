import math

import jax
import mpmath
import numpy as np
import pytest

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral

EXPONENTS = [1, 1.01, 1.1, 1.5, 1.75, 2, 3, 4, 8, 101.0, math.inf]
FINITE = [p for p in EXPONENTS if 1 < p < math.inf]


def exact_values(W):
    """Singular values to fifty digits."""
    tall = W if W.shape[0] >= W.shape[1] else W.T
    return list(mpmath.svd_r(mpmath.matrix(tall.tolist()), compute_uv=False))


def power_norm(values, p):
    return max(values) if p == mpmath.inf else sum(v**p for v in values) ** (1 / mpmath.mpf(p))


def conjugate(p):
    p = mpmath.mpf(p)
    return mpmath.inf if p == 1 else mpmath.mpf(1) if p == mpmath.inf else p / (p - 1)


def matrices(rng, d, e):
    least = min(d, e)
    U, V = (np.linalg.qr(rng.normal(size=(n, least)))[0] for n in (d, e))
    yield rng.normal(size=(d, e))
    yield rng.normal(size=(d, e)) * np.logspace(0, -20, d)[:, None]
    yield U @ V.T
    yield (U * np.logspace(0, -30, least)) @ V.T
    yield np.outer(rng.normal(size=d), rng.normal(size=e))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 3), (1, 9), (12, 10)], ids=str)
def test_norms_are_exact_within_the_rounding_promised(shape):
    with mpmath.workdps(50):
        for W in matrices(np.random.default_rng(0), *shape):
            values = exact_values(W)
            for p in EXPONENTS:
                geometry = Schatten(p)
                for norm, exponent in (
                    (geometry.norm, mpmath.mpf(p)),
                    (geometry.dual_norm, conjugate(p)),
                ):
                    truth = power_norm(values, exponent)
                    error = abs(mpmath.mpf(float(norm(W))) - truth) / truth
                    assert error <= geometry.norm_rounding(*shape)


def test_norms_of_large_matrices_are_exact_within_the_rounding_promised():
    order = 256  # Hadamard matrices have orthogonal rows of entries of size one
    W = np.ones((1, 1))
    while len(W) < order:
        W = np.block([[W, W], [W, -W]])
    for p in EXPONENTS:
        truth = math.sqrt(order) * order ** (1 / p)
        assert Schatten(p).norm(W) == pytest.approx(
            truth, rel=Schatten(p).norm_rounding(order, order)
        )


def test_promised_rounding_stays_far_below_any_tolerance():
    for p in EXPONENTS:
        assert Schatten(p).norm_rounding(10, 10) < 1e-13
        assert Schatten(p).norm_rounding(768, 768) < 2e-11


def test_named_norms_are_those_of_numpy():
    W = np.random.default_rng(1).normal(size=(4, 6))
    for geometry, order in ((Nuclear(), "nuc"), (Schatten(2), "fro"), (Spectral(), 2)):
        assert geometry.norm(W) == pytest.approx(np.linalg.norm(W, order), rel=1e-14)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("shape", [(1, 5), (5, 1)])
def test_of_a_vector_every_norm_is_euclidean(p, shape):
    W = np.random.default_rng(2).normal(size=shape)
    assert Schatten(p).norm(W) == pytest.approx(np.linalg.norm(W), rel=1e-14)
    np.testing.assert_allclose(
        Schatten(p).steepest_descent_direction(W), W / np.linalg.norm(W), rtol=1e-13
    )


@pytest.mark.parametrize("p", EXPONENTS)
def test_of_a_diagonal_matrix_it_is_the_entrywise_geometry(p):
    W = np.diag([3.0, -1.0, 0.5, 0.0])
    for method in ("norm", "dual_norm", "steepest_descent_direction"):
        found = getattr(Schatten(p), method)(W)
        np.testing.assert_allclose(found, getattr(Lp(p), method)(W), rtol=1e-13, atol=1e-15)
    if p in FINITE:
        np.testing.assert_allclose(
            Schatten(p).mirror_map(W), Lp(p).mirror_map(W), rtol=1e-13, atol=1e-14
        )


def test_two_is_frobenius_to_the_last_bit_and_needs_no_decomposition(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a singular value decomposition was asked for")

    monkeypatch.setattr(np.linalg, "svd", refuse)
    monkeypatch.setattr(np.linalg, "svdvals", refuse)
    W = np.random.default_rng(3).normal(size=(5, 7, 9))
    for method in ("norm", "dual_norm", "steepest_descent_direction"):
        np.testing.assert_array_equal(
            getattr(Schatten(2), method)(W), getattr(Frobenius(), method)(W)
        )
    assert Schatten(2).mirror_map(W) is W
    assert Schatten(2).inverse_mirror_map(W) is W
    assert Schatten(2).norm_rounding(7, 9) == Frobenius().norm_rounding(7, 9)


as_it_is = Spectral().steepest_descent_direction
compiled = jax.jit(as_it_is)


@pytest.mark.parametrize("direction", [as_it_is, compiled], ids=["numpy", "jax"])
@pytest.mark.parametrize("shape", [(2, 2), (6, 4), (20, 30)], ids=str)
@pytest.mark.parametrize("rank", [1, 2])
def test_spectral_direction_has_the_rank_of_the_gradient(direction, shape, rank):
    rng = np.random.default_rng(4)
    U, V = rng.normal(size=(50, shape[0], rank)), rng.normal(size=(50, rank, shape[1]))
    G = (U @ V) * 10.0 ** rng.uniform(-30, 30, size=(50, 1, 1))
    D = np.asarray(direction(G), dtype=float)
    values = np.linalg.svdvals(D)
    np.testing.assert_allclose(values[:, :rank], 1, rtol=1e-4)
    np.testing.assert_allclose(values[:, rank:], 0, atol=1e-4)


def test_nuclear_direction_is_the_first_pair_of_singular_vectors():
    G = np.random.default_rng(5).normal(size=(4, 3))
    U, _, V = np.linalg.svd(G)
    np.testing.assert_allclose(
        Nuclear().steepest_descent_direction(G), np.outer(U[:, 0], V[0]), atol=1e-14
    )
    tied = Nuclear().steepest_descent_direction(np.eye(3))
    assert np.linalg.matrix_rank(tied) == 1
    assert np.trace(tied) == pytest.approx(1)


@pytest.mark.parametrize("p", FINITE)
@pytest.mark.parametrize("values", [(2.0, 0.5), (1.0, 1.0)], ids=["apart", "repeated"])
def test_mirror_map_is_the_gradient_of_the_potential(p, values):
    rng = np.random.default_rng(6)
    U, V = (np.linalg.qr(rng.normal(size=(n, 2)))[0] for n in (3, 2))
    W = (U * values) @ V.T
    image = Schatten(p).mirror_map(W)
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -20
        for place in np.ndindex(*W.shape):
            sides = []
            for sign in (1, -1):
                moved = mpmath.matrix(W.tolist())
                moved[place] += sign * step
                sides.append(sum(s**p for s in mpmath.svd_r(moved, compute_uv=False)) / p)
            slope = (sides[0] - sides[1]) / (2 * step)
            assert image[place] == pytest.approx(float(slope), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("p", FINITE)
def test_mirror_maps_keep_the_rank(p):
    # |s|^(p - 1) of singular values of 1e-17 is 0.7 with p = 1.01: rounding must count as zero.
    rng = np.random.default_rng(7)
    W = rng.normal(size=(20, 6, 1)) @ rng.normal(size=(20, 1, 4))
    W /= np.linalg.norm(W, axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(Schatten(p).mirror_map(W), W, atol=1e-13)
    np.testing.assert_allclose(Schatten(p).inverse_mirror_map(W), W, atol=2e-13)


@pytest.mark.parametrize("p", FINITE)
def test_maps_turn_with_the_matrix(p):
    rng = np.random.default_rng(8)
    W = rng.normal(size=(4, 3))
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3))
    for method in (Schatten(p).mirror_map, Schatten(p).steepest_descent_direction):
        np.testing.assert_allclose(method(U @ W @ V), U @ method(W) @ V, rtol=1e-10, atol=1e-12)
