"""Tables of averages over finite prompts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.prompts.finite_length import ErrorTable, error_table, prompt_moments
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

LENGTHS = np.array([1, 2, 64, 1e12])
NAMES = ("output_error", "mean_output", "output_second_moment", "sum_of_squared_weights")


@pytest.fixture(scope="module")
def table():
    return error_table(LENGTHS, largest_deviation=8.0)


def everything(table, s):
    return [getattr(table, name)(s) for name in NAMES]


def slopes(table, s):
    return jax.jvp(lambda s: everything(table, s), (s,), (jnp.ones_like(s),))[1]


values_jitted, slopes_jitted = jax.jit(everything), jax.jit(slopes)


def test_values_between_knots(table, rng):
    s = np.concatenate([rng.uniform(0, 8, 60), rng.uniform(0, 0.1, 20), [0, 1e-8, 8]])
    exact = prompt_moments(s[:, None], LENGTHS)
    with double_precision():
        for name, found in zip(NAMES, values_jitted(table, s), strict=True):
            assert found.shape == (83, 4)
            np.testing.assert_allclose(found, getattr(exact, name), rtol=1e-6)


def test_slopes_are_those_of_the_exact_functions(table):
    s, step = np.array([0.0311, 0.7, 2.5, 6.01]), 1e-4
    after, before = (prompt_moments(s[:, None] + d, LENGTHS) for d in (step, -step))
    with double_precision():
        for name, found in zip(NAMES, slopes_jitted(table, s), strict=True):
            expected = (getattr(after, name) - getattr(before, name)) / (2 * step)
            scale = np.abs(getattr(after, name)) + np.abs(expected)
            assert (np.abs(found - expected) <= 2e-6 * scale).all()


def test_slopes_do_not_jump_at_knots(table):
    knots = np.arange(1, 120) / 16
    with double_precision():
        before, after = slopes_jitted(table, knots - 1e-11), slopes_jitted(table, knots + 1e-11)
        for left, right in zip(before, after, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-12)


def test_one_length_adds_no_axis_and_single_precision_stays():
    small, s = error_table(64, largest_deviation=0.5), jnp.array([[0.1, 0.2]], jnp.float32)
    assert isinstance(small, ErrorTable)
    for found, exact in zip(values_jitted(small, s), prompt_moments(s, 64)[:4], strict=True):
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_outside_the_table_is_an_error_or_nan(table):
    for s in (8.001, -0.1, np.nan):
        with pytest.raises(InvalidInputError, match="largest_deviation"):
            table.output_error(s)
    with double_precision():
        for found in values_jitted(table, np.array([8.001, -0.1, np.nan, 1.0])):
            assert np.isnan(found[:3]).all()
            assert np.isfinite(found[3]).all()


@pytest.mark.parametrize("largest", [0, -1, 32, [1, 2]])
def test_impossible_tables_are_refused(largest):
    with pytest.raises(InvalidInputError, match="largest_deviation"):
        error_table(10, largest_deviation=largest)


@pytest.mark.parametrize("kind", [">f8", "<f4", list])
def test_deviations_may_be_held_in_any_way(table, kind):
    plain = np.array([0.5, 1.0])
    held = plain.tolist() if kind is list else plain.astype(kind)
    for name in ("output_error", "mean_output", "output_second_moment"):
        found = getattr(table, name)(held)
        np.testing.assert_array_equal(found, getattr(table, name)(plain))
