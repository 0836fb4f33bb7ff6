"""Optimizers of optax, declared as they are, step by step beside those of the same name here."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest

from attractor.attention.scaled import Scaled
from attractor.support.precision import double_precision
from attractor.training.optimizers import adam, declare, lion, muon

KEYS, QUERIES = (3, 2), (4, 2)


@functools.cache
def compiled(optimizer):
    """A step from mantissas and one log scale."""

    def step(mantissas, log, memory, parameters):
        def scaled(leaf):
            return Scaled(leaf, jnp.full(leaf.shape if optimizer.by_entry else (), log))

        return optimizer.step(jax.tree.map(scaled, mantissas), memory, parameters)

    return jax.jit(step)


def path(optimizer, log):
    """Five steps of two factors, along gradients of the size ``exp(log)``."""
    random = np.random.default_rng(0)
    with double_precision():
        parameters = {"K": jnp.ones(KEYS), "Q": jnp.ones(QUERIES)}
        memory, found = optimizer.init(parameters), []
        for _ in range(5):
            mantissas = jax.tree.map(lambda leaf: random.normal(size=leaf.shape), parameters)
            parameters, memory = compiled(optimizer)(mantissas, log, memory, parameters)
            found.append(np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(parameters)]))
        return np.array(found)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (muon(0.1, 0.8), optax.contrib.muon(0.1, beta=0.8, eps=0.0)),
        (adam(0.1, 0.8, 0.9), optax.adam(0.1, 0.8, 0.9, eps=0.0)),
        (lion(0.1, 0.8, 0.9), optax.lion(0.1, 0.8, 0.9, weight_decay=0.0)),
    ],
    ids=["Muon", "Adam", "Lion"],
)
def test_the_same_steps_until_floating_point_ends(ours, theirs):
    """At e^-5000 ours takes them still, and optax none, or 0 / 0."""
    stock = declare(theirs, geometry=None)
    for log in (0.0, -300.0):
        np.testing.assert_allclose(path(ours, log), path(stock, log), rtol=1e-11)
    np.testing.assert_allclose(path(ours, -5000.0), path(ours, 0.0), rtol=1e-9)
    lost = path(stock, -5000.0)
    assert np.isnan(lost).all() or (lost == 1).all()


def test_the_eps_of_optax_ends_the_steps_of_muon_and_adam():
    """By default it is 1e-8, added to a norm of about e^-30 = 9e-14."""
    for theirs, ours in ((optax.contrib.muon(0.1), muon(0.1)), (optax.adam(0.1), adam(0.1))):
        small = np.abs(path(declare(theirs, geometry=None), -30.0)[0] - 1).max()
        assert small < 0.05 * np.abs(path(ours, -30.0)[0] - 1).max()


def test_the_decay_of_lion_by_optax_is_apart_from_the_gradient():
    """It shortens the weights by a part of the step, which no size of the gradient changes."""
    decayed = path(declare(optax.lion(0.1, weight_decay=0.2), geometry=None), 0.0)[0]
    plain = path(lion(0.1), 0.0)[0]
    np.testing.assert_allclose(decayed, plain - 0.1 * 0.2, rtol=1e-14)
