import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius
from attractor.training import Optimizer, declare, gradient_descent, normalized_gradient_descent


def test_a_normalized_step_ignores_the_size_of_the_gradient():
    optimizer = normalized_gradient_descent(0.5)
    for size in (1e-30, 1.0, 1e30):
        updates, _ = optimizer.update(size * jnp.array([[3.0, 4.0]]), optimizer.init(None))
        np.testing.assert_allclose(updates, [[-0.3, -0.4]], rtol=1e-6)
    zero, _ = optimizer.update(jnp.zeros((2, 2)), optimizer.init(None))
    assert (zero == 0).all()


def test_gradient_descent_is_sgd():
    optimizer = gradient_descent(0.5)
    updates, _ = optimizer.update(jnp.array([[2.0]]), optimizer.init(jnp.zeros((1, 1))))
    assert updates.item() == -1.0


def test_an_optimizer_is_an_optax_transformation_with_a_declaration():
    optimizer = normalized_gradient_descent(0.5)
    assert isinstance(optimizer, optax.GradientTransformationExtraArgs)
    assert optimizer.geometry == Frobenius() and optimizer.reads == "direction"
    assert repr(optimizer) == "normalized gradient descent(learning_rate=0.5)"
    chained = optax.chain(optax.clip_by_global_norm(1.0), optimizer)
    assert not isinstance(chained, Optimizer)
    again = declare(chained, geometry=optimizer.geometry, reads="direction", name="clipped")
    assert again.geometry == Frobenius() and again.name == "clipped"


def test_equal_settings_give_the_same_optimizer_so_that_nothing_compiles_twice():
    assert normalized_gradient_descent(0.1) is normalized_gradient_descent(0.1)
    assert gradient_descent(0.1) is not gradient_descent(0.2)


def test_what_is_read_of_a_tiny_gradient():
    tiny = Scaled(jnp.array([[2.0]]), jnp.asarray(-5000.0))
    assert normalized_gradient_descent(0.1).read(tiny).item() == 2.0
    assert gradient_descent(0.1).read(tiny).item() == 0.0


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "fast", None])
def test_learning_rates_are_positive_numbers(bad):
    for build in (gradient_descent, normalized_gradient_descent):
        with pytest.raises(InvalidInputError, match="learning_rate"):
            build(bad)


def test_declarations_are_checked():
    with pytest.raises(InvalidInputError, match="transformation: int"):
        declare(3, geometry=Frobenius())
    with pytest.raises(InvalidInputError, match="geometry"):
        declare(optax.sgd(0.1), geometry="frobenius")
    with pytest.raises(InvalidInputError, match="reads"):
        declare(optax.sgd(0.1), geometry=Frobenius(), reads="sign")
