import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.geometry import Lp
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers.algorithms.moments import adam


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def steps_of(optimizer, mantissas, logs):
    """Updates for a sequence of gradients, ``mantissas * exp(logs)``."""
    parameters = jnp.zeros(mantissas.shape[1:])
    state, found = optimizer.init(parameters), []
    for mantissa, log in zip(mantissas, logs, strict=True):
        number = Scaled(jnp.asarray(mantissa), jnp.asarray(log))
        update, state = optimizer.update(number, state, parameters)
        found.append(np.asarray(update))
    return np.array(found)


class Plain:
    """An optimizer that takes true gradients, given scaled ones."""

    def __init__(self, optimizer):
        self.init, self.optimizer = optimizer.init, optimizer

    def update(self, gradient, state, parameters):
        return self.optimizer.update(self.optimizer.read(gradient), state, parameters)


def exact_steps(mantissas, logs, learning_rate, b1, b2, corrected=True):
    """Adam without eps as it is written, entry by entry, in 60 digits."""
    with mpmath.workdps(60):
        exact = np.vectorize(mpmath.mpf, otypes=[object])
        b1, b2 = mpmath.mpf(b1), mpmath.mpf(b2)
        m, v, found = 0, 0, []
        gradients = exact(mantissas) * np.vectorize(mpmath.exp, otypes=[object])(exact(logs))
        for t, g in enumerate(gradients, 1):
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
            late = (1 - b1**t, 1 - b2**t) if corrected else (1, 1)
            sizes = [mpmath.sqrt(entry) for entry in v / late[1]]
            found.append(
                [
                    -learning_rate * a / s if s else 0
                    for a, s in zip(m / late[0], sizes, strict=True)
                ]
            )
        return np.array(found, dtype=float)


@pytest.mark.long
def test_gradients_of_every_magnitude_entry_by_entry():
    """Up by e^1000 and down by e^-1000 in a step; one entry starts late, one never."""
    random = np.random.default_rng(0)
    mantissas, logs = random.normal(size=(40, 5)), np.zeros((40, 5))
    logs[:, 1] = np.cumsum(random.normal(size=40) * 300)
    logs[10:, 2] = -1000
    logs[20:, 2] = 1500
    mantissas[:15, 3] = mantissas[:, 4] = 0
    logs[:, 3] = -5000
    logs[:, 4] = -np.inf
    for b1, b2, corrected in (
        (0.9, 0.999, True),
        (0.9, 0.9, False),
        (0.0, 0.9, False),
        (0.0, 0.0, True),
    ):
        found = steps_of(adam(0.1, b1, b2, bias_correction=corrected), mantissas, logs)
        finite = np.where(np.isinf(logs), 0, logs)
        expected = exact_steps(mantissas, finite, 0.1, b1, b2, corrected)
        # Scales of 5,000 have roundings of 1e-12; 1 - b2^t loses three digits at t = 1.
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)
    assert (found[:, 4] == 0).all()
    np.testing.assert_allclose(found, -0.1 * np.sign(mantissas), rtol=1e-15)  # both are zero


def test_a_memory_that_outlives_that_of_squares_takes_long_steps():
    """With b2 < b1^2, steps grow as gradients fall; with b2 = 0 as much as they."""
    mantissas = np.random.default_rng(5).normal(size=(12, 2))
    logs = np.repeat(-10.0 * np.arange(12)[:, None] - 5000, 2, axis=1)
    for b1, b2, last in ((0.9, 0.0, 1e25), (0.9, 0.3, 1.0)):
        found = steps_of(adam(0.1, b1, b2), mantissas, logs)
        np.testing.assert_allclose(found, exact_steps(mantissas, logs, 0.1, b1, b2), rtol=1e-10)
        assert np.abs(found[-1]).min() > last


def test_without_correction_it_is_a_plain_loop_with_eps():
    random = np.random.default_rng(3)
    mantissas, m, v = random.normal(size=(8, 4)), 0.0, 0.0
    optimizer = adam(0.1, 0.8, 0.9, 0.3, bias_correction=False)
    assert optimizer.settings["bias_correction"] is False
    found = steps_of(Plain(optimizer), mantissas, np.zeros(8))
    for step, g in zip(found, mantissas, strict=True):
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g**2
        np.testing.assert_allclose(step, -0.1 * m / (np.sqrt(v) + 0.3), rtol=1e-13)


def test_a_small_eps_tends_to_none_until_squares_of_gradients_underflow():
    mantissas, logs = np.random.default_rng(4).normal(size=(8, 3)), np.full(8, np.log(1e-100))
    without = steps_of(adam(0.1), mantissas, logs)
    for eps, near in ((1e-102, 0.1), (1e-110, 1e-9), (1e-130, 1e-13)):
        found = steps_of(Plain(adam(0.1, eps=eps)), mantissas, logs)
        np.testing.assert_allclose(found, without, rtol=near)


def test_it_is_optax_to_the_bit_where_nothing_underflows():
    random = np.random.default_rng(1)
    mantissas = random.normal(size=(30, 4))
    parameters = jnp.zeros(4)
    for ours, theirs in (
        (adam(0.01), optax.adam(0.01, eps=0.0)),
        (adam(0.01, eps=1e-8), optax.adam(0.01)),
    ):
        mine, other = ours.init(parameters), theirs.init(parameters)
        for mantissa in mantissas:
            found, mine = ours.update(jnp.asarray(mantissa), mine, parameters)
            expected, other = theirs.update(jnp.asarray(mantissa), other, parameters)
            np.testing.assert_array_equal(found, expected)


def test_without_eps_the_scale_of_the_loss_does_not_matter():
    mantissas = np.random.default_rng(2).normal(size=(30, 4))
    zero = np.zeros((30, 4))
    np.testing.assert_allclose(
        steps_of(adam(0.1), mantissas, zero - 5000),
        steps_of(adam(0.1), mantissas, zero),
        rtol=1e-11,
    )


def test_with_and_without_eps_are_two_algorithms():
    without, with_eps = adam(0.1), adam(0.1, eps=1e-8)
    assert without.name == "Adam, eps = 0" and without.geometry == Lp(np.inf)
    assert without.by_entry and without is adam(0.1, weight_decay=0.0)
    assert with_eps.name == "Adam" and with_eps.geometry is None
    assert with_eps.gradient_scale == "absolute"


def test_weight_decay_is_added_to_the_gradient_before_anything_else():
    optimizer = adam(0.1, weight_decay=1.0)
    parameters = jnp.array([2.0, -3.0])
    number = Scaled(jnp.array([1.0, 1.0]), jnp.array([-2000.0, 3.0]))
    moved, _ = optimizer.step(number, optimizer.init(parameters), parameters)
    np.testing.assert_allclose(moved, [1.9, -3.1], rtol=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        {"bias_correction": "no"},
        {"b1": 1.0},
        {"b2": -0.1},
        {"eps": -1e-8},
        {"eps": np.inf},
        {"b1": "large"},
    ],
)
def test_arguments_are_checked(bad):
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        adam(0.1, **bad)
