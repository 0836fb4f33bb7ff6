import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from scipy import stats

from attractor.prompts.regression import batches
from attractor.support.precision import double_precision

KEY = np.array([7, 11], np.uint32)


def test_the_bits_are_those_of_jax():
    first, second = np.arange(64, dtype=np.uint32), np.arange(64, dtype=np.uint32) ** 3
    ours = np.concatenate(batches.threefry(jnp.asarray(KEY), first, second))
    counters = jnp.concatenate([first, second])
    theirs = jax.extend.random.threefry_2x32((jnp.uint32(7), jnp.uint32(11)), counters)
    np.testing.assert_array_equal(ours, theirs)


def test_numbers_of_a_pair_are_standard_normal_and_independent():
    with double_precision():
        pair = jax.jit(batches.normal_pair)(jnp.asarray(KEY), jnp.arange(200_000), 3)
    x, y = (np.asarray(numbers, np.float64) for numbers in pair)
    for numbers in (x, y, (x + y) / np.sqrt(2), x[:-1] / np.sqrt(2) - y[1:] / np.sqrt(2)):
        assert stats.kstest(numbers, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(x**2, y**2)[0, 1]) < 0.01
    angle = np.arctan2(y, x) / (2 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 1e-3
    assert 4 < max(np.abs(x).max(), np.abs(y).max()) < 6.7


def test_normals_of_a_token_depend_on_its_prompt_and_place_alone():
    with double_precision():
        key = jnp.asarray(KEY)
        normals = jax.jit(batches.token_normals, static_argnums=(2, 3))
        many = np.asarray(normals(key, jnp.arange(16), 2, 5))
        one = np.asarray(normals(key, jnp.array([9]), 2, 5))
        other = np.asarray(normals(jax.jit(batches.derived_key)(key, 1), jnp.arange(16), 2, 5))
    np.testing.assert_allclose(many[9], one[0], rtol=1e-5)
    assert len(np.unique(many)) == many.size
    assert not np.isin(other, many).any()
