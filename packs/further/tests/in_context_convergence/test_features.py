"""Attention over discrete tokens, and its training over features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.papers import Measurement, Outcome, examine, get_claim
from attractor_further.in_context_convergence.data import features, random_features
from attractor_further.in_context_convergence.discrete_features import token_values
from attractor_further.in_context_convergence.feature_training import RECORDED, attention_on_own


def found(name, case, seed=0):
    return examine(get_claim(f"in-context-convergence/{name}"), case, seed)


@pytest.mark.parametrize("seed", range(5))
def test_discrete_attention_on_random_values(seed):
    assert found("discrete-attention", random_features(seed + 1), seed).outcome is Outcome.HOLDS
    assert found("discrete-selection", random_features(seed + 1), seed).outcome is Outcome.HOLDS


def test_one_value_leaves_nothing_to_select():
    case = features(1)
    assert found("discrete-selection", case).outcome is Outcome.VACUOUS
    assert isinstance(found("discrete-attention", case).measured, Measurement)


def test_training_over_features_is_gradient_descent_on_the_loss():
    case = features(3, dominant=2)
    values, frequencies = token_values(case)

    def loss(U):
        attention = jax.nn.softmax(jnp.log(frequencies) + values @ U.T @ values.T, axis=-1)
        return frequencies @ ((values - attention @ values) ** 2).sum(-1) / 2

    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(loss))
        U = np.zeros((3, 3))
        for _ in range(1000):
            U = U - 0.05 * np.asarray(gradient(U))
    recorded = attention_on_own(case)
    logs = np.log(frequencies) + values @ U.T @ values.T
    attention = np.exp(logs) / np.exp(logs).sum(-1, keepdims=True)
    at_that_time = [np.interp(1000 * 0.05, RECORDED, row) for row in recorded]
    assert at_that_time == pytest.approx(np.diag(attention), abs=2e-3)


def test_equally_frequent_features_are_learned_together():
    assert found("frequent-feature-first", features()).outcome is Outcome.ASSUMPTION_NOT_MET
