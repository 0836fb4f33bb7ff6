import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers import polyak_step


def test_it_halves_the_distance_on_a_parabola():
    W = {"a": jnp.array([[3.0, -4.0]]), "b": jnp.array([2.0])}
    optimizer = polyak_step()
    excess = sum((leaf**2).sum() for leaf in W.values()) / 2
    updates, _ = optimizer.update(W, optimizer.init(W), W, log_excess=jnp.log(excess))
    jax.tree.map(lambda u, w: np.testing.assert_allclose(u, -w / 2, rtol=1e-6), updates, W)


def test_it_is_the_step_of_optax_where_that_has_the_digits():
    with double_precision():
        rng = np.random.default_rng(0)
        g = jnp.asarray(rng.normal(size=(3, 4)))
        stock = optax.polyak_sgd(max_learning_rate=1e9, scaling=1.0, f_min=0.25)
        wanted, _ = stock.update(g, stock.init(g), g, value=jnp.asarray(0.9))
        optimizer = polyak_step()
        found, _ = optimizer.update(g, optimizer.init(g), g, log_excess=jnp.log(0.65))
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("fall", [0.0, 300.0, 5000.0])
def test_it_is_right_where_loss_and_gradient_underflow(fall):
    # Scaling a loss by e^-fall leaves the step as it was.
    with double_precision():
        W = {"a": jnp.zeros((1, 2)), "b": jnp.zeros(1)}
        optimizer = polyak_step(0.5)
        gradient = {
            "a": Scaled(jnp.array([[3.0, 4.0]]), jnp.asarray(-fall)),
            "b": Scaled(jnp.array([12.0]) * jnp.exp(2.0), jnp.asarray(-fall - 2.0)),
        }
        moved, _ = optimizer.step(gradient, optimizer.init(W), W, log_excess=jnp.log(338.0) - fall)
        np.testing.assert_allclose(moved["a"], [[-3, -4]], rtol=1e-11)
        np.testing.assert_allclose(moved["b"], [-12], rtol=1e-11)
        time = optimizer.log_time_step(gradient, log_excess=jnp.log(338.0) - fall)
        assert float(time) == pytest.approx(fall, abs=1e-11)


def test_it_asks_for_what_it_needs():
    optimizer = polyak_step()
    assert optimizer.needs == {"log_excess"}
    with pytest.raises(InvalidInputError, match="log_excess"):
        optimizer.update(jnp.ones((1, 1)), optimizer.init(None))
