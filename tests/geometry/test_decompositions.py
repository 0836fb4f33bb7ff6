import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.geometry import singular_value_decomposition, singular_values
from attractor.geometry.jax_decompositions import one_at_a_time
from attractor.support.precision import double_precision


@pytest.mark.parametrize("shape", [(4, 3), (5, 4, 3), (2, 3, 4, 5)])
def test_jax_arrays_give_what_numpy_gives(shape):
    W = np.random.default_rng(0).normal(size=shape)
    with double_precision():
        ours = singular_values(jnp.asarray(W))
        U, values, V = singular_value_decomposition(jnp.asarray(W))
        np.testing.assert_allclose(ours, singular_values(W), rtol=1e-12)
        np.testing.assert_allclose((U * values[..., None, :]) @ V, W, atol=1e-13)


def test_batches_of_batches_are_decomposed_one_matrix_at_a_time():
    W = np.random.default_rng(1).normal(size=(2, 3, 4, 4))
    with double_precision():
        program = jax.jit(jax.vmap(jax.vmap(singular_values)))
        text = program.lower(W).as_text()
        np.testing.assert_allclose(program(W), singular_values(W), rtol=1e-12)
    assert "lapack_dgesdd" in text
    # A batched call is what programs wait for each other in.
    assert "tensor<3x4x4xf64>, tensor<3x4xf64>" not in text
    assert "tensor<4x4xf64>, tensor<4xf64>" in text


def test_arguments_without_the_batch_are_shared():
    solve = one_at_a_time(lambda A, b: jnp.linalg.solve(A, b))
    random = np.random.default_rng(2)
    A, b = random.normal(size=(3, 3)), random.normal(size=(5, 3))
    with double_precision():
        found = jax.vmap(solve, in_axes=(None, 0))(jnp.asarray(A), jnp.asarray(b))
    np.testing.assert_allclose(found, np.linalg.solve(A, b.T).T, rtol=1e-10)


@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (2, 3, 4, 5)])
def test_where_divide_and_conquer_fails_iterations_do_not(shape, monkeypatch):
    W, usual = np.random.default_rng(0).normal(size=shape), np.linalg.svd

    def fails(*arguments, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    expected = usual(W, full_matrices=False)
    monkeypatch.setattr(np.linalg, "svd", fails)
    U, values, V = singular_value_decomposition(W)
    np.testing.assert_allclose(values, expected[1], rtol=1e-13)
    np.testing.assert_allclose((U * values[..., None, :]) @ V, W, atol=1e-13)
    with pytest.raises(np.linalg.LinAlgError):
        singular_value_decomposition(np.full(shape, np.nan))
