import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.geometry import Frobenius, Lp
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers.algorithms.moments import (
    lion,
    momentum,
    normalized_momentum,
    sign_momentum,
)

FACTORIES = {
    "momentum": momentum,
    "normalized momentum": normalized_momentum,
    "sign momentum": sign_momentum,
    "Lion": lion,
}


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def run(transformation, gradients, log_scale=None):
    parameters = {"head": jnp.zeros(3), "W": jnp.zeros((2, 2))}
    state, found = transformation.init(parameters), []
    for head, W in gradients:
        gradient = {"head": jnp.asarray(head), "W": jnp.asarray(W)}
        if log_scale is not None:
            by_entry = transformation.by_entry
            gradient = {
                name: Scaled(leaf, jnp.full(leaf.shape if by_entry else (), log_scale))
                for name, leaf in gradient.items()
            }
        update, state = transformation.update(gradient, state, parameters)
        found.append(np.concatenate([np.ravel(update["head"]), np.ravel(update["W"])]))
    return np.array(found)


@pytest.fixture
def gradients():
    random = np.random.default_rng(0)
    return [(random.normal(size=3), random.normal(size=(2, 2))) for _ in range(6)]


def flat(gradients):
    return np.array([np.concatenate([head, W.ravel()]) for head, W in gradients])


def averages(gradients, decay):
    total, found = 0, []
    for gradient in flat(gradients):
        total = decay * total + (1 - decay) * gradient
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_that_of_optax(gradients, nesterov):
    found = run(momentum(0.1, 0.8, nesterov=nesterov), gradients)
    expected = run(optax.sgd(0.1, momentum=0.8, nesterov=nesterov), gradients)
    np.testing.assert_array_equal(found, expected)


def test_the_formulas(gradients):
    mean = averages(gradients, 0.8)
    norms = np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(
        run(normalized_momentum(0.1, 0.8), gradients), -0.1 * mean / norms, rtol=1e-13
    )
    np.testing.assert_array_equal(run(sign_momentum(0.1, 0.8), gradients), -0.1 * np.sign(mean))
    before = np.concatenate([np.zeros((1, 7)), averages(gradients, 0.7)[:-1]])
    np.testing.assert_array_equal(
        run(lion(0.1, 0.8, 0.7), gradients), -0.1 * np.sign(0.8 * before + 0.2 * flat(gradients))
    )


def test_lion_is_optax_and_its_ends_are_signs_of_the_memory_and_of_the_gradient(gradients):
    theirs = optax.lion(0.1, 0.8, 0.7, weight_decay=0.0)
    np.testing.assert_array_equal(run(lion(0.1, 0.8, 0.7), gradients), run(theirs, gradients))
    together = run(lion(0.1, 0.8, 0.8), gradients)
    np.testing.assert_array_equal(together, run(sign_momentum(0.1, 0.8), gradients))
    signs = -0.1 * np.sign(flat(gradients))
    for b2 in (0.0, 0.9):
        np.testing.assert_array_equal(run(lion(0.1, 0.0, b2), gradients), signs)
    # With b2 = 0 the memory is the last gradient.
    before = np.concatenate([np.zeros((1, 7)), flat(gradients)[:-1]])
    np.testing.assert_array_equal(
        run(lion(0.1, 0.8, 0.0), gradients), -0.1 * np.sign(0.8 * before + 0.2 * flat(gradients))
    )


@pytest.mark.parametrize("name", FACTORIES)
def test_what_a_tiny_gradient_does(gradients, name):
    """Momentum is raw and underflows; the others take their full step."""
    optimizer = FACTORIES[name](0.1)
    tiny, plain = run(optimizer, gradients, -5000.0), run(optimizer, gradients)
    np.testing.assert_allclose(tiny, 0 * plain if name == "momentum" else plain, rtol=1e-11)


@pytest.mark.parametrize("name", FACTORIES)
def test_a_gradient_of_zero_moves_nothing_and_settings_are_kept(name):
    optimizer = FACTORIES[name](0.1, weight_decay=0.5)
    assert optimizer.name == name and optimizer.settings["weight_decay"] == 0.5
    assert optimizer is FACTORIES[name](0.1, weight_decay=0.5)
    assert optimizer.geometry == (Lp(np.inf) if optimizer.by_entry else Frobenius())
    assert (run(FACTORIES[name](0.1), [(np.zeros(3), np.zeros((2, 2)))] * 2) == 0).all()
    with pytest.raises(InvalidInputError, match="learning_rate"):
        FACTORIES[name](-0.1)
    with pytest.raises(InvalidInputError, match="b1" if name == "Lion" else "decay"):
        FACTORIES[name](0.1, 1.5)
