import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.geometry import Frobenius
from attractor.support.errors import InvalidInputError
from attractor.training import (
    Optimizer,
    declare,
    gradient_descent,
    normalized_gradient_descent,
    with_rescaled_state,
)


def test_an_optimizer_is_an_optax_transformation_with_a_declaration():
    optimizer = normalized_gradient_descent(0.5)
    assert isinstance(optimizer, optax.GradientTransformationExtraArgs)
    assert optimizer.geometry == Frobenius() and optimizer.gradient_scale == "global"
    assert repr(optimizer) == "normalized gradient descent(learning_rate=0.5)"
    chained = optax.chain(optax.clip_by_global_norm(1.0), optimizer)
    assert not isinstance(chained, Optimizer)
    again = declare(chained, geometry=optimizer.geometry, gradient_scale="global", name="clipped")
    assert again.geometry == Frobenius() and again.name == "clipped"


def test_what_is_declared_has_the_name_of_what_makes_it():
    def made():
        return optax.GradientTransformation(lambda params: (), lambda g, s, p=None: (g, s))

    rates = {"learning_rate": [0.1, 0.2]}
    assert declare(optax.sgd, hyperparameters=rates, geometry=None).name == "sgd"
    assert declare(made(), geometry=None).name == "made"
    assert declare(optax.sgd(0.1), geometry=None).name == "declared by the user"
    assert with_rescaled_state(made(), geometry=None).name == "made"


def test_what_is_read_of_a_tiny_gradient():
    tiny = Scaled(jnp.array([[2.0]]), jnp.asarray(-5000.0))
    assert normalized_gradient_descent(0.1).read(tiny).item() == 2.0
    assert gradient_descent(0.1).read(tiny).item() == 0.0


def test_declarations_are_checked():
    with pytest.raises(InvalidInputError, match="transformation: int"):
        declare(3, geometry=Frobenius())
    with pytest.raises(InvalidInputError, match="geometry"):
        declare(optax.sgd(0.1), geometry="unheard of")
    with pytest.raises(InvalidInputError, match="gradient_scale"):
        declare(optax.sgd(0.1), geometry=Frobenius(), gradient_scale="sign")
    with pytest.raises(InvalidInputError, match="weight_decay"):
        declare(optax.sgd(0.1), geometry=Frobenius(), weight_decay=-1)


@pytest.mark.parametrize("make", [declare, with_rescaled_state])
def test_a_declared_optimizer_has_one_weight_decay(make):
    for several in ([0.1], [0.1, 0.2], np.zeros(1)):
        with pytest.raises(InvalidInputError, match="weight_decay"):
            make(optax.sgd(0.1), geometry=Frobenius(), weight_decay=several)


def test_a_declared_weight_decay_reaches_loops_of_ones_own():
    optimizer = declare(optax.sgd(0.5), geometry=Frobenius(), weight_decay=0.1)
    W = jnp.array([[2.0]])
    updates, _ = optimizer.update(jnp.array([[1.0]]), optimizer.init(W), W)
    assert updates.item() == pytest.approx(-0.5 * (1 + 0.2))
