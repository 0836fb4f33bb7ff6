import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.models.layers import drop

SHAPE = (400, 500)


@pytest.fixture(scope="module")
def kept():
    """Which of two hundred thousand numbers are kept, for keys of consecutive steps."""
    base = jax.random.key(1)
    key_of = jax.vmap(lambda step: jax.random.fold_in(base, step))(jnp.arange(4))
    dropped = jax.jit(jax.vmap(lambda key: drop(jnp.ones(SHAPE), 0.3, key)))(key_of)
    return np.asarray(dropped)


def test_dropout_keeps_means(kept):
    assert set(np.unique(kept)) == {np.float32(0), np.float32(1 / 0.7)}
    error = np.sqrt(0.3 * 0.7 / kept[0].size)
    assert np.abs((kept == 0).mean((1, 2)) - 0.3).max() < 4 * error


def test_what_is_dropped_is_independent(kept):
    centered = (kept == 0) - 0.3
    one = 1 / np.sqrt(centered[0].size)  # the standard error of a correlation

    def correlation(a, b):
        return abs((a * b).mean() / (0.3 * 0.7))

    for step in range(3):
        assert correlation(centered[step], centered[step + 1]) < 4 * one
    for lag in (1, 2, 4, 64, 128, 250):
        assert correlation(centered[0][:, lag:], centered[0][:, :-lag]) < 6 * one
        assert correlation(centered[0][lag:], centered[0][:-lag]) < 6 * one
    # Sums over rows and columns spread as those of independent numbers do.
    for axis in (0, 1):
        sums = centered[0].sum(axis)
        ratio = sums.var() / (0.3 * 0.7 * SHAPE[axis])
        assert abs(ratio - 1) < 5 * np.sqrt(2 / sums.size)


def test_nothing_is_dropped_without_a_key_or_with_probability_zero():
    x = jnp.ones(10)
    assert drop(x, 0.5, None) is x
    assert drop(x, 0.0, jax.random.key(0)) is x
