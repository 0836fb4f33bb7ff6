"""Schedules are computed in the precision of the run, against exact arithmetic."""

import contextlib
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import pytest

import attractor as at
from attractor.support.precision import double_precision

COUNTS = np.r_[0:300, 300:6000:37]
LAST = 4000


def fraction(count, steps=LAST):
    """Share of the steps that are over."""
    return Fraction(min(int(count), steps), steps)


SCHEDULES = {
    "power_decay": (
        at.power_decay(0.1, 0.5, 3.0),
        lambda k: mpmath.mpf(0.1) * (1 + mpmath.mpf(int(k)) / 3) ** -0.5,
    ),
    "until": (at.until(1000, 0.1), lambda k: 0.1 * (k < 1000)),
    "linear": (
        optax.linear_schedule(0.1, 0.0, LAST),
        lambda k: Fraction(0.1) * (1 - fraction(k)),
    ),
    "polynomial": (
        optax.polynomial_schedule(0.1, 0.01, 3, LAST),
        lambda k: Fraction(0.01) + (Fraction(0.1) - Fraction(0.01)) * (1 - fraction(k)) ** 3,
    ),
    "exponential": (
        optax.exponential_decay(0.1, LAST, 0.3),
        lambda k: mpmath.mpf(0.1) * mpmath.mpf(0.3) ** (mpmath.mpf(int(k)) / LAST),
    ),
    "cosine": (
        optax.cosine_decay_schedule(0.1, LAST),
        lambda k: mpmath.mpf(0.1) * (1 + mpmath.cos(mpmath.pi * min(int(k), LAST) / LAST)) / 2,
    ),
    "user's quotient": (lambda count: 0.1 / (1 + count), lambda k: Fraction(0.1) / (1 + int(k))),
    "user's root": (
        lambda count: 0.1 / jnp.sqrt(1 + count),
        lambda k: mpmath.mpf(0.1) / mpmath.sqrt(1 + int(k)),
    ),
    "user's table": (
        lambda count: jnp.asarray([0.1, 0.2, 0.3])[count % 3],
        lambda k: [0.1, 0.2, 0.3][int(k) % 3],
    ),
}
"""Schedules, and their exact values for the numbers that they are given."""


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("double", [True, False], ids=["float64", "float32"])
def test_a_schedule_is_as_exact_as_the_parameters(name, double):
    schedule, exact = SCHEDULES[name]
    wanted = np.array([float(exact(k)) for k in COUNTS])
    with double_precision() if double else contextlib.nullcontext():
        optimizer = at.gradient_descent(schedule)
        start = optimizer.init(jnp.zeros(()))

        @jax.jit
        @jax.vmap
        def rate(count):
            return -optimizer.update(jnp.ones(()), start._replace(step=count))[0]

        found = rate(jnp.asarray(COUNTS, jnp.int32))
        assert start.step.dtype == jnp.int32
        assert found.dtype == (jnp.float64 if double else jnp.float32)
        found = np.asarray(found)
    rounding = np.finfo(found.dtype).eps
    # Powers and cosines are off by a few roundings, and differences from one by those of one.
    np.testing.assert_allclose(found, wanted, rtol=8 * rounding, atol=rounding * wanted.max())


def test_single_precision_stays_so_beside_double():
    with double_precision():
        optimizer = at.gradient_descent(optax.linear_schedule(0.1, 0.0, 40))
        W = jnp.ones(3, jnp.float32)
        updates, memory = optimizer.update(W, optimizer.init(W), W)
        assert updates.dtype == jnp.float32 and memory.step.dtype == jnp.int32


def test_a_run_takes_the_steps_of_its_schedule():
    tokens, head = at.Tokens([[[1.0], [-1.0]]], [[1.0]], [1]), at.LinearHead([1.0])
    rate = at.normalized_gradient_descent(optax.linear_schedule(0.1, 0.0, 41))
    run = at.train(tokens, head, rate, steps=40, record=range(41))
    W = run.data["W"].values.ravel()
    exact = [Fraction(0.1) * sum(1 - Fraction(k, 41) for k in range(n)) for n in range(41)]
    np.testing.assert_allclose(W - W[0], [float(one) for one in exact], rtol=0, atol=2e-15)
