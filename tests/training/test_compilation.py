"""However the step is compiled, it is the same step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attractor as at
from attractor.datasets import unit_tokens
from attractor.training import blocks, compilation, release_compiled


def step(objective, condition, matrices):
    """Something with short rows, a product and a reduction."""
    scores = jnp.einsum("bij,bkj->bik", matrices, matrices)
    return objective * jax.nn.softmax(scores).sum(-2)


@pytest.mark.parametrize("size", [3, 10, 20, 24])
def test_numbers_are_those_of_the_plain_compiler(size):
    matrices = jnp.asarray(np.random.default_rng(size).normal(size=(5, size, size)), jnp.float32)
    found = compilation.compiled_for(step, matrices)(2.0, None, matrices)
    assert np.allclose(found, step(2.0, None, matrices), rtol=1e-5)


def test_the_same_size_compiles_once():
    traces = []

    def traced(objective, condition, matrices):
        traces.append(matrices.shape)
        return matrices + objective

    matrices = jnp.ones((2, 4, 4))
    for _ in range(3):
        compilation.compiled_for(traced, matrices)(1.0, None, matrices)
    assert traces == [(2, 4, 4)]


def test_options_that_the_installed_xla_lacks_are_left_out(monkeypatch):
    gone = compilation._ON_CPU | {"xla_cpu_of_a_version_long_gone": True}
    monkeypatch.setattr(compilation, "_ON_CPU", gone)
    matrices = jnp.ones((2, 40, 40))
    found = compilation.compiled_for(step, matrices)(1.0, None, matrices)
    assert np.allclose(found, step(1.0, None, matrices))


def test_the_options_still_mean_something_to_the_installed_xla():
    assert all(compilation._understood(*option) for option in compilation._SMALL_ON_CPU.items())


def test_what_was_released_compiles_again_to_the_same_numbers():
    tokens, head = unit_tokens(3, 4, 5, seeds=[1])
    before = at.train(tokens, head, at.gradient_descent(0.1), steps=5)
    jitted = compilation._compiled(blocks._advance, *compilation._SMALL_ON_CPU.items())
    assert jitted._cache_size() > 0
    release_compiled()
    assert jitted._cache_size() == 0
    again = at.train(tokens, head, at.gradient_descent(0.1), steps=5)
    assert again.data.identical(before.data)
