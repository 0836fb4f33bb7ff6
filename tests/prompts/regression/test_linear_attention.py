import math

import numpy as np
import pytest

from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    infinite_risk,
    linear_attention_optimum,
    linear_attention_risk,
)
from attractor.support.errors import InvalidInputError

LENGTHS = (10, 50, 100, 1000)


def one_head(product):
    zeros = np.zeros(len(product))
    return Blocks(product, zeros, zeros, np.array(1.0))


@pytest.mark.parametrize("length", [1, 4])
def test_risk_of_all_blocks_against_simulation(simulate, length):
    rng = np.random.default_rng(7)
    covariance = [[0.9, 0.3], [0.3, 0.6]]
    task = RegressionTask(covariance, [[0.5, -0.2], [-0.2, 1.0]], 0.7, 0.4)
    shapes = ((2, 2, 2), (2, 2), (2, 2), (2,))
    blocks = Blocks(*(0.6 * rng.standard_normal(shape) for shape in shapes))
    simulation = simulate(task, length, 100_000, seed=length)
    risk = linear_attention_risk(task, blocks, length)
    assert simulation.agrees(simulation.linear(blocks), risk)
    assert not simulation.agrees(simulation.linear(blocks), infinite_risk(task, blocks))


def test_risk_of_a_label_head_is_the_published_polynomial(rng):
    s, q = np.diag([0.5, 1.0, 2.0]), np.eye(3)
    task = RegressionTask(s, q, weight_variance=0.7, label_noise=0.4)
    a, length = rng.standard_normal((3, 3)), 6
    g = (1 + 1 / length) * s + np.trace(s) / length * np.eye(3)
    risk = 0.7 * (np.trace(a.T @ s @ g @ a @ q) - 2 * np.trace(s @ a @ q) + np.trace(q))
    risk += 0.4 / length * np.trace(a.T @ s @ a @ q)
    assert linear_attention_risk(task, one_head(a), length) == pytest.approx(risk / 2, rel=1e-12)


def test_infinite_length_is_the_infinite_risk(rng):
    task = RegressionTask(np.eye(3), label_noise=0.2)
    head = one_head(rng.standard_normal((3, 3)))
    assert linear_attention_risk(task, head, math.inf) == infinite_risk(task, head)


@pytest.mark.parametrize(
    ("task", "errors"),
    [
        (RegressionTask.official(as_run=True), [0.6741, 0.3793, 0.2769, 0.1239]),
        (RegressionTask.official(), [0.4642, 0.2109, 0.1598, 0.1064]),
        (RegressionTask(np.eye(5), None, 0.2, 0.1, 0.1), [0.4939, 0.2150, 0.1610, 0.1065]),
    ],
)
def test_optimum_of_the_official_task(task, errors):
    found = [task.mean_squared_error(linear_attention_optimum(task, n).risk) for n in LENGTHS]
    np.testing.assert_allclose(found, errors, atol=6e-5)


def test_optimum_is_the_least_risk(rng):
    task = RegressionTask.official(as_run=True)
    product, risk = linear_attention_optimum(task, 20)
    assert linear_attention_risk(task, one_head(product), 20) == pytest.approx(risk, rel=1e-12)
    for _ in range(5):
        step = 1e-3 * rng.standard_normal((5, 5))
        up, down = (linear_attention_risk(task, one_head(product + h), 20) for h in (step, -step))
        assert min(up, down) > risk
        assert up == pytest.approx(down, rel=1e-9)  # the risk is quadratic in the product


def test_optimum_without_noise_is_preconditioned_gradient_descent():
    eigenvalues, n = np.array([0.3, 1.0, 2.5]), 12
    product, _ = linear_attention_optimum(RegressionTask(np.diag(eigenvalues)), n)
    inverse = (n + 1) / n * eigenvalues + eigenvalues.sum() / n
    np.testing.assert_allclose(product, np.diag(1 / inverse), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("length", [0, -1, math.nan])
def test_bad_lengths(length):
    with pytest.raises(InvalidInputError, match="length"):
        linear_attention_optimum(RegressionTask(np.eye(2)), length)
    with pytest.raises(InvalidInputError, match="length"):
        linear_attention_risk(RegressionTask(np.eye(2)), one_head(np.eye(2)), length)
