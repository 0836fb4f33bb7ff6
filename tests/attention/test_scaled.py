import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention.scaled import (
    Scaled,
    add_multiple,
    direction,
    entry_directions,
    leaf_directions,
    log_norm,
    magnitude,
)
from attractor.support.precision import double_precision


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def scaled(mantissa, log_scale):
    return Scaled(jnp.asarray(mantissa, dtype="float64"), jnp.asarray(log_scale, dtype="float64"))


TRANSFORMATIONS = {
    "adam": optax.adam(0.1),
    "adamax": optax.adamax(0.1),
    "add_decayed_weights": optax.add_decayed_weights(0.1),
    "clip": optax.clip(1.0),
    "clip_by_block_rms": optax.clip_by_block_rms(1.0),
    "clip_by_global_norm": optax.clip_by_global_norm(1.0),
    "adaptive_grad_clip": optax.adaptive_grad_clip(0.1),
    "centralize": optax.centralize(),
    "identity": optax.identity(),
    "lion": optax.lion(0.1),
    "muon": optax.contrib.muon(0.1),
    "normalize_by_update_norm": optax.normalize_by_update_norm(),
    "rmsprop": optax.rmsprop(0.1),
    "scale": optax.scale(-0.1),
    "scale_by_schedule": optax.scale_by_schedule(lambda count: 0.1),
    "scale_by_sign": optax.scale_by_sign(),
    "scale_by_trust_ratio": optax.scale_by_trust_ratio(),
    "set_to_zero": optax.set_to_zero(),
    "sgd": optax.sgd(0.1),
    "sgd_momentum": optax.sgd(0.1, momentum=0.9),
    "sign_sgd": optax.sign_sgd(0.1),
    "trace": optax.trace(0.9),
    "zero_nans": optax.zero_nans(),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_no_optax_transformation_corrupts_a_scaled_number(name):
    """Each one gives what it gives for the true values, or raises."""
    transformation = TRANSFORMATIONS[name]
    parameters = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    number = scaled([[1.0, -2.0], [0.5, 4.0]], 3.0)
    state = transformation.init(parameters)
    expected, _ = transformation.update(magnitude(number), state, parameters)
    try:
        found, _ = transformation.update(number, state, parameters)
    except (TypeError, AttributeError, ValueError):
        return
    found = magnitude(found) if isinstance(found, Scaled) else found
    np.testing.assert_allclose(found, expected)


def test_arithmetic_and_arrays_refuse_a_scaled_number():
    number = scaled([1.0], -2000.0)
    for wrong in (
        lambda: number * 2,
        lambda: np.float64(2) * number,
        lambda: jnp.asarray(2.0) * number,
        lambda: jnp.asarray(number),
        lambda: number + number,
    ):
        with pytest.raises(TypeError):
            wrong()
    assert jax.tree.leaves(number) == [number]


def test_magnitude_underflows_honestly_and_no_earlier():
    assert magnitude(scaled([2.0], -800.0))[0] == 0
    kept = magnitude(scaled([1e100], -800.0))[0]
    np.testing.assert_allclose(kept, 1e100 * np.exp(-400) * np.exp(-400))
    assert kept > 0
    assert magnitude(scaled([0.0], -np.inf))[0] == 0


def test_direction_brings_leaves_to_one_scale():
    number = {"a": scaled([1.0], -5000.0), "b": scaled([2.0], -5001.0)}
    found = direction(number)
    np.testing.assert_allclose(found["b"] / found["a"], 2 * np.exp(-1))
    np.testing.assert_allclose(log_norm(number), -5000 + np.log1p(4 * np.exp(-2)) / 2)


def test_zero_stays_zero():
    number = {"a": scaled([0.0], -np.inf), "b": scaled([0.0], -np.inf)}
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(direction(number)))
    assert log_norm(number) == -np.inf


def test_a_scale_for_every_entry():
    number = {
        "a": scaled([2.0, -3.0, 0.0], [-2000.0, -2001.0, -np.inf]),
        "b": scaled([1.0], [-5000.0]),
    }
    found = direction(number)
    np.testing.assert_allclose(found["a"], [2, -3 * np.exp(-1), 0])
    assert found["b"] == 0  # it is that much smaller
    assert leaf_directions(number)["b"] == 1
    np.testing.assert_array_equal(jnp.sign(entry_directions(number)["a"]), [1, -1, 0])
    np.testing.assert_allclose(log_norm(number), -2000 + np.log(4 + 9 * np.exp(-2)) / 2)
    np.testing.assert_allclose(
        magnitude({"c": scaled([1.0, 3.0], [-800.0, 1.0])})["c"][1], 3 * np.e
    )


def test_adding_a_multiple_loses_neither():
    parameters = jnp.array([2.0, 0.0, -1.0])
    for log_scale in (np.full(3, -3.0), -3.0):
        found = add_multiple(scaled([1.0, 1.0, 4.0], log_scale), 0.5, parameters)
        np.testing.assert_allclose(
            magnitude(found), np.exp(-3) * np.array([1, 1, 4]) + [1, 0, -0.5]
        )
    found = add_multiple(scaled([1.0, 1.0, 4.0], [-3000.0, -3000.0, 3000.0]), 0.5, parameters)
    np.testing.assert_allclose(found.mantissa, [2, 1, 4])
    np.testing.assert_allclose(found.log_scale, [np.log(0.5), -3000, 3000])


def test_a_leaf_with_a_scale_for_each_entry_keeps_their_ratios():
    found = leaf_directions([scaled([2.0, 3.0], [-1000.0, -1001.0]), scaled([4.0, 5.0], -2000.0)])
    np.testing.assert_allclose(found[0][1] / found[0][0], 1.5 * np.exp(-1.0), rtol=1e-14)
    np.testing.assert_allclose(found[1][1] / found[1][0], 1.25, rtol=1e-14)
