import math

import numpy as np
import pytest

from attractor.prompts.finite_length import prompt_moments
from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    infinite_risk,
    leading_order,
    leading_order_without_labels,
    opposite_heads,
    trained_limit,
)
from attractor.support.errors import InvalidInputError


def heads_of(a, b):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return Blocks(a, np.zeros(a.shape[:-1]), np.zeros(a.shape[:-1]), b)


def test_trained_head_has_the_closed_form(correlated):
    head = trained_limit(correlated).blocks
    t = head.value_label**2
    closed = 5 / 2 * (t - 1) * (1 - 2 / t) ** -3.5
    found = leading_order(correlated, head)
    assert found.coefficient == pytest.approx(closed, rel=1e-11)
    assert found.coefficient == pytest.approx(88.3, abs=0.05)
    assert found.risk(1000.0) == pytest.approx(closed / 1000, rel=1e-11)


def test_one_input_against_exact_averages_over_long_prompts():
    task = RegressionTask([[1.3]], [[0.8]], weight_variance=0.7, label_noise=0.4)
    a, b, length = 0.35, 2.2, 1e7
    nodes, masses = np.polynomial.hermite_e.hermegauss(40)
    queries = math.sqrt(0.8) * nodes
    moments = prompt_moments(abs(a * queries) * math.sqrt(1.3), length)
    along = 0.7 * 1.3 * moments.output_second_moment
    signal = 0.7 * math.sqrt(1.3) * abs(queries) * moments.mean_output
    noise = 0.4 * moments.sum_of_squared_weights
    squares = b**2 * (along + noise) - 2 * b * signal + 0.7 * queries**2
    exact = masses @ squares / masses.sum() / 2
    head = heads_of([[a]], b)
    expected = (exact - infinite_risk(task, head)) * length
    assert leading_order(task, head).coefficient == pytest.approx(expected, rel=1e-4)


def test_several_heads_against_simulation(simulate):
    task = RegressionTask([[0.8, 0.2], [0.2, 0.5]], label_noise=0.3)
    heads = heads_of([[[0.3, 0.1], [0.0, 0.2]], [[-0.1, 0.2], [0.1, -0.3]]], [1.1, -0.9])
    length = 60
    simulation = simulate(task, length, 30_000, seed=0)
    predictions = simulation.softmax(heads)
    queries, weights = simulation.queries[:, :2], simulation.weights
    maps = np.einsum("h,hij->ij", heads.value_label, task.covariance @ heads.key_query)
    limits = np.einsum("ni,ij,nj->n", weights, maps, queries)
    # the limit on the same prompts takes most of the noise out of the difference
    excess = (predictions - simulation.targets) ** 2 - (limits - simulation.targets) ** 2
    expected = 2 * leading_order(task, heads).coefficient / length
    error = excess.std() / math.sqrt(len(excess))
    assert abs(excess.mean() - expected) < 4 * error + 3 * expected / length
    assert 10 * error < expected


def test_one_head_is_the_sum_of_its_halves(correlated):
    head = trained_limit(correlated).blocks
    halves = heads_of([head.key_query] * 2, [head.value_label / 2] * 2)
    whole = leading_order(correlated, head).coefficient
    assert leading_order(correlated, halves).coefficient == pytest.approx(whole, rel=1e-12)


def test_opposite_heads_leak_less_of_the_mean_the_smaller_their_scores(correlated):
    head = trained_limit(correlated).blocks
    leaks = [leading_order(correlated, opposite_heads(head, e)).coefficient for e in (1, 0.5, 0.1)]
    assert leading_order(correlated, head).coefficient > leaks[0] > leaks[1] > leaks[2]


@pytest.mark.parametrize("horizon", [0.70, 0.72])
def test_coefficient_is_finite_up_to_the_horizon(horizon):
    head = heads_of([[horizon]], 1.0)
    found = leading_order(RegressionTask([[1.0]]), head)
    assert math.isfinite(found.coefficient) == (horizon < math.sqrt(0.5))
    assert found.limit == pytest.approx((1 - horizon) ** 2 / 2)


def test_tokens_without_labels():
    eye = np.eye(4)
    found = leading_order_without_labels(eye, eye, 0.18 * eye, eye, 0.18 * eye)
    assert found.limit == 0
    predicted = [found.risk(n) for n in (16, 1024, 4096)]
    np.testing.assert_allclose(predicted, [0.2957, 0.00462, 0.001155], rtol=1e-3)


def test_tokens_without_labels_against_simulation(rng):
    covariance, queries = np.diag([0.5, 1.0]), np.diag([1.0, 0.3])
    u, v = 0.4 * rng.standard_normal((2, 2)), rng.standard_normal((1, 2))
    target, length = rng.standard_normal((1, 2)), 100
    z = rng.standard_normal((30_000, 2)) * np.sqrt(np.diag(queries))
    x = rng.standard_normal((30_000, length, 2)) * np.sqrt(np.diag(covariance))
    weights = np.exp(np.einsum("nli,ij,nj->nl", x, u, z))
    outputs = np.einsum("nl,nli->ni", weights / weights.sum(1, keepdims=True), x) @ v.T
    limit = z @ (v @ covariance @ u - target).T
    excess = np.sum((outputs - z @ target.T) ** 2 - limit**2, axis=1)
    found = leading_order_without_labels(covariance, queries, u, v, target)
    assert found.limit == pytest.approx(np.sum((v @ covariance @ u - target) ** 2 @ queries))
    error = excess.std() / math.sqrt(len(excess))
    assert abs(excess.mean() - found.coefficient / length) < 4 * error + 0.02 / length


def test_bad_input():
    task = RegressionTask(np.eye(2))
    with pytest.raises(InvalidInputError, match="label_row"):
        leading_order(task, heads_of(np.eye(2), 1.0)._replace(label_row=np.ones(2)))
    with pytest.raises(InvalidInputError, match="value_matrix"):
        leading_order_without_labels(np.eye(2), np.eye(2), np.eye(2), np.eye(3), np.eye(2))
