import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.geometry import Schatten, Spectral
from attractor.geometry.decompositions import singular_power
from attractor.geometry.jax_decompositions import (
    cubes_together as sum_of_cubes,
    powers_together as together,
    sum_of_powers,
)
from attractor.support.precision import double_precision

_CUT = 15 * 2.0**-52
"""Singular values of 8 x 7 matrices below it, relative to the largest, count as zero."""


def hard_matrices():
    """Graded, rank-deficient, repeated, tiny, zero; singular values keep away from the cut."""
    random = np.random.default_rng(0)
    normal = random.normal
    rows = 10.0 ** -np.array([6.0, 0, 13, 3, 9, 1, 11, 5])[:, None]
    columns = 10.0 ** -np.array([7.0, 3, 0, 6, 5, 1, 2])
    separate = np.zeros((8, 7))
    separate[[5, 0, 3]] = normal(size=(3, 7)) * 10.0 ** -np.array([13.0, 0, 7])[:, None]
    orthogonal = np.linalg.qr(normal(size=(8, 7)))[0]
    return np.stack(
        [
            normal(size=(8, 7)),
            rows * normal(size=(8, 7)),
            normal(size=(8, 7)) * 10.0 ** -np.array([2.0, 13, 7, 0, 4, 11, 9]),
            np.sqrt(rows) * normal(size=(8, 7)) * columns,
            separate,
            random.integers(-9, 10, (8, 3)) @ random.integers(-9, 10, (3, 7)).astype(float),
            np.outer(normal(size=8), normal(size=7)),
            orthogonal[:, :4] @ orthogonal[:7, :4].T,
            np.eye(8, 7)[::-1] * [1, -1, 1, 2, 2, -1, 1],
            np.tril(np.ones((8, 7))),
            1e-300 * normal(size=(8, 7)),
            np.zeros((8, 7)),
        ]
    )


def exact(matrix, exponent):
    """``U s^exponent V^T`` at 60 digits."""
    with mpmath.workdps(60):
        U, values, V = mpmath.svd_r(mpmath.matrix(matrix.tolist()))
        kept = [s**exponent if s > _CUT * values[0] else mpmath.mpf(0) for s in values]
        product = U * mpmath.diag(kept) * V
        return np.array(product.tolist(), float)


@pytest.mark.parametrize("exponent", [0, 2])
def test_hard_matrices_are_exact_to_rounding(exponent):
    W = hard_matrices()
    W = W / np.where((size := np.abs(W).max((1, 2), keepdims=True)) > 0, size, 1)
    with double_precision():
        found = np.asarray(together(jnp.asarray(W), exponent))
    for matrix, ours in zip(W, found, strict=True):
        wanted = exact(matrix, exponent) if matrix.any() else matrix
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-14 * max(1, np.abs(wanted).max()))


@pytest.mark.long
def test_sums_of_cubes_are_exact_to_rounding():
    W = hard_matrices()
    W = W / np.where((size := np.abs(W).max((1, 2), keepdims=True)) > 0, size, 1)
    with mpmath.workdps(60):
        values = [mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False) for matrix in W]
        wanted = np.array([mpmath.fsum(s**3 for s in each) for each in values], float)
    with double_precision():
        found = jax.jit(jax.vmap(lambda W: sum_of_powers(W, 3)))
        np.testing.assert_allclose(found(W), wanted, rtol=5e-15)
        np.testing.assert_allclose(found(W.mT), wanted, rtol=5e-15)


def test_the_steepest_direction_of_schatten_1_5_has_norm_one_and_the_dual_norm_as_slope():
    W = hard_matrices()[:-1]
    norm = Schatten(1.5)
    with double_precision():
        found = np.asarray(jax.jit(jax.vmap(norm.steepest_descent_direction))(jnp.asarray(W)))
    np.testing.assert_allclose(norm.norm(found), 1, rtol=1e-13)
    np.testing.assert_allclose((W * found).sum((1, 2)), norm.dual_norm(W), rtol=1e-13)
    assert not norm.steepest_descent_direction(np.zeros((3, 2))).any()


@pytest.mark.long
def test_a_matrix_has_the_same_bits_whatever_lies_beside_it():
    W = hard_matrices()[:, :7]
    low = W[[4, 6, 6, 4]]
    functions = [lambda W: together(W, 0), lambda W: together(W, 2), sum_of_cubes]
    with double_precision():
        for function in functions:
            alone = function(jnp.asarray(low))
            beside = function(jnp.asarray(np.concatenate([low[:2], W[:2]])))
            np.testing.assert_array_equal(alone[:2], beside[:2])


def test_batches_of_batches_are_worked_on_together_and_larger_matrices_one_at_a_time():
    W = np.random.default_rng(1).normal(size=(2, 3, 4, 5))
    larger = np.random.default_rng(2).normal(size=(2, 13, 13))
    with double_precision():
        program = jax.jit(lambda W: singular_power(W, 0))
        texts = [program.lower(jnp.asarray(W)).compile().as_text() or "" for W in (W, larger)]
        assert ["lapack" in text for text in texts] == [False, True]
        np.testing.assert_allclose(program(jnp.asarray(W)), singular_power(W, 0), atol=1e-14)
        found = program(jnp.asarray(larger))
        np.testing.assert_allclose(found, singular_power(larger, 0), atol=1e-12)


def test_directions_of_any_magnitude_and_nan_harm_no_other():
    scale = np.array([1e-200, 1.0, 1e200])[:, None, None]
    W = scale * np.random.default_rng(3).normal(size=(3, 4, 3))
    W[1, 2, 1] = np.nan
    with double_precision():
        found = np.asarray(jax.jit(Spectral().steepest_descent_direction)(W))
    np.testing.assert_allclose(found[[0, 2]].mT @ found[[0, 2]], [np.eye(3)] * 2, atol=1e-14)
    assert np.isnan(found[1]).all()
