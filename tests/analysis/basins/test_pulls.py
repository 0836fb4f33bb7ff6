import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attractor as at
from attractor.analysis.basins.problem import check_problem
from attractor.analysis.basins.pulls import pulls
from attractor.attention import get_loss
from attractor.precision import double_precision


@pytest.mark.parametrize("loss", ["logistic", "exponential", "linear", "squared"])
def test_the_pull_of_a_token_is_the_gradient_it_adds(step, loss):
    keys = np.array([[0.3, 1.0], [-1.0, 0.2]])
    values, query, weight = np.array([0.2, 0.7]), 2.0, 3.0
    tokens = at.Tokens(keys[None], np.array([[query]]), np.ones(1), values=values[None, :, None])
    head = at.LinearHead([weight])
    problem = check_problem(tokens, head, step, loss=loss, parameterization="W", geometry=None)
    found = pulls(problem, np.array([[[0]], [[1]]]))
    W = 4 * (keys[0] - keys[1])

    def plain_loss(W):
        attention = jax.nn.softmax(keys @ W * query)
        return get_loss(loss).value(weight * attention @ values, jnp.ones(()))

    with double_precision():
        size = np.log(np.linalg.norm(jax.grad(plain_loss)(jnp.asarray(W))))
    scores = keys @ W * query
    log_weight = scores[1] - np.logaddexp(*scores)
    assert log_weight < -15
    assert size == pytest.approx(log_weight + found.log_size[0, 0, 0, 1], abs=1e-6)


def test_which_tokens_are_better(step, make):
    data = make([[[0, 1], [1, 0], [1, 1], [0, 0]]], [[1, 0.5, 0.5, 0.1 + 0.2]])
    problem = check_problem(*data, step, loss="logistic", parameterization="p", geometry=None)
    found = pulls(problem, np.array([[[0]], [[1]], [[3]]]))
    assert found.better[:, 0, 0].astype(int).tolist() == [[0] * 4, [1, 0, 0, 0], [1, 1, 1, 0]]
    assert found.tied[:, 0, 0].astype(int).tolist() == [[0] * 4, [0, 0, 1, 0], [0] * 4]
    assert (found.log_size[1, 0, 0, [1, 2]] == -np.inf).all()


def test_losses_too_small_for_floating_point_still_tell_tokens_apart(step, make):
    data = make([[[0, 1], [1, 0]]], [[2000, 1000]])
    problem = check_problem(*data, step, loss="logistic", parameterization="p", geometry=None)
    found = pulls(problem, np.array([[[1]]]))
    assert found.better[0, 0, 0].tolist() == [True, False]
    expected = -1000 + np.log(1000 * np.sqrt(2))
    assert found.log_size[0, 0, 0, 0] == pytest.approx(expected, rel=1e-12)
