import jax.numpy as jnp
import numpy as np
import pytest

from attractor.geometry import lengths
from attractor.geometry.vectors import cosines
from attractor.support.precision import double_precision


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-140, 1.0, 1e140, 1e160, 1e300])
def test_lengths_of_every_magnitude(rng, size):
    vectors = rng.standard_normal((5, 7))
    found = lengths(size * vectors)
    np.testing.assert_allclose(found / size, np.linalg.norm(vectors, axis=-1), rtol=1e-14)
    with double_precision():
        traced = lengths(jnp.asarray(size * vectors), keepdims=True)
        assert traced.dtype == np.float64 and traced.shape == (5, 1)
        np.testing.assert_allclose(np.asarray(traced)[:, 0], found, rtol=1e-14)


def test_ordinary_lengths_are_those_of_a_plain_sum_to_the_bit(rng):
    vectors = rng.standard_normal((50, 9)) * 10.0 ** rng.integers(-140, 140, (50, 1))
    np.testing.assert_array_equal(lengths(vectors), np.linalg.norm(vectors, axis=-1))
    columns = np.linalg.norm(vectors, axis=0)
    np.testing.assert_array_equal(lengths(vectors, axis=0), columns)


def test_zero_and_what_is_not_finite():
    found = lengths(np.array([[0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0]]))
    np.testing.assert_array_equal(found, [0.0, np.inf, np.nan])


def test_single_precision_stays_what_it_is():
    vectors = np.array([[3e30, 4e30], [3e-30, 4e-30]], dtype=np.float32)
    found = lengths(vectors)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [5e30, 5e-30], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200, 1e307])
def test_cosines_of_any_magnitude(scale):
    W = np.array([[[3.0, 0.0], [0.0, 4.0]], [[-3.0, 0.0], [0.0, 0.0]]]) * scale
    np.testing.assert_allclose(cosines(W, np.array([[1.0, 0.0], [0.0, 0.0]])), [0.6, -1], rtol=1e-3)


def test_cosines_of_what_has_no_direction():
    W = np.array([[[0.0, 0.0]], [[np.inf, 1.0]], [[np.nan, 1.0]]])
    assert np.isnan(cosines(W, np.array([[1.0, 0.0]]))).all()
