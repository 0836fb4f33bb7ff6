import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers import gradient_descent, normalized_gradient_descent

GRADIENT = {"a": jnp.array([[3.0, 4.0]]), "b": jnp.array([12.0])}


def update(optimizer, gradient):
    return optimizer.update(gradient, optimizer.init(gradient), gradient)[0]


def test_gradient_descent_is_sgd():
    stock = optax.sgd(0.3)
    for gradient in (jnp.array([[2.0]]), jnp.array([0.1, -1e-30, 7e7])):
        wanted, _ = stock.update(gradient, stock.init(gradient))
        np.testing.assert_array_equal(update(gradient_descent(0.3), gradient), wanted)


def test_a_normalized_step_ignores_the_size_of_the_gradient():
    for size in (1e-30, 1.0, 1e30):
        updates = update(normalized_gradient_descent(0.5), size * jnp.array([[3.0, 4.0]]))
        np.testing.assert_allclose(updates, [[-0.3, -0.4]], rtol=1e-6)


def test_one_norm_for_all_or_one_for_each():
    together = update(normalized_gradient_descent(13.0), GRADIENT)
    np.testing.assert_allclose(together["a"], [[-3.0, -4.0]], rtol=1e-6)
    np.testing.assert_allclose(together["b"], [-12.0], rtol=1e-6)
    apart = update(normalized_gradient_descent(13.0, per_factor=True), GRADIENT)
    np.testing.assert_allclose(apart["a"], [[-13 * 0.6, -13 * 0.8]], rtol=1e-6)
    np.testing.assert_allclose(apart["b"], [-13.0], rtol=1e-6)


def test_of_a_single_array_both_are_the_same_bits():
    gradient = jnp.asarray(np.random.default_rng(0).normal(size=(7, 5)))
    np.testing.assert_array_equal(
        update(normalized_gradient_descent(0.1), gradient),
        update(normalized_gradient_descent(0.1, per_factor=True), gradient),
    )


@pytest.mark.parametrize("scale", [1e-37, 1e37])
def test_no_norm_overflows_or_vanishes_in_single_precision(scale):
    gradient = jnp.asarray(scale * np.random.default_rng(1).uniform(1, 2, (30, 30)), "float32")
    updates = update(normalized_gradient_descent(1.0), gradient)
    assert np.linalg.norm(updates) == pytest.approx(1, rel=1e-5)


def test_the_time_of_a_normalized_step_is_that_of_gradient_descent():
    with double_precision():
        gradient = {"a": Scaled(jnp.array([[3.0, 4.0]]), jnp.asarray(-5000.0))}
        gradient["b"] = Scaled(jnp.array([12.0]), jnp.asarray(-5000.0))
        wanted = np.log(0.1) - np.log(13) + 5000
        found = normalized_gradient_descent(0.1).log_time_step(gradient)
        assert float(found) == pytest.approx(wanted, rel=1e-15)
        apart = normalized_gradient_descent(0.1, per_factor=True)
        assert np.isnan(apart.log_time_step(gradient))
        alone = {"a": gradient["a"]}
        assert float(apart.log_time_step(alone)) == pytest.approx(np.log(0.1 / 5) + 5000, rel=1e-15)
        assert float(gradient_descent(0.1).log_time_step(gradient)) == np.log(0.1)
        zero = {"a": Scaled(jnp.zeros((1, 2)), jnp.asarray(-jnp.inf))}
        assert normalized_gradient_descent(0.1).log_time_step(zero) == -jnp.inf


def test_settings_that_are_no_flags_are_refused():
    with pytest.raises(InvalidInputError, match="per_factor"):
        normalized_gradient_descent(0.1, per_factor="yes")


@pytest.mark.parametrize("size", (1e-3, 1e-16, 1e-18, 1e-300))
@pytest.mark.parametrize("per_factor", (False, True))
def test_a_guarded_norm_divides_by_what_it_says(size, per_factor):
    step = normalized_gradient_descent(0.1, per_factor=per_factor, eps=2.22e-16)
    gradient = {"K": np.array([[3.0, 0.0]]) * size, "Q": np.array([[0.0, 4.0]]) * size}
    with jax.enable_x64(True):
        plain = jax.tree.map(jnp.asarray, gradient)
        updates, _ = step.update(plain, step.init(plain), plain)
    norms = {"K": 3 * size, "Q": 4 * size} if per_factor else {"K": 5 * size, "Q": 5 * size}
    for name, g in gradient.items():
        np.testing.assert_allclose(
            updates[name], -0.1 * g / (norms[name] + 2.22e-16), rtol=1e-13, atol=0
        )


def test_a_guarded_norm_is_exact_below_floating_point():
    step = normalized_gradient_descent(0.1, eps=1e-16)
    with jax.enable_x64(True):
        start = jnp.zeros((1, 2))
        gradient = Scaled(jnp.array([[3.0, 4.0]]), jnp.array(-600.0))
        moved, _ = step.step(gradient, step.init(start), start)
    expected = -0.1 * np.exp(-600 - np.log(1e-16)) * np.array([[3.0, 4.0]])
    np.testing.assert_allclose(moved, expected, rtol=1e-12)
