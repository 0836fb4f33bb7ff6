import math
from typing import Any

import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt.finite_length import prompt_moments
from attractor.prompt.regression import (
    Blocks,
    RegressionTask,
    infinite_risk,
    leading_order,
    softmax_risk,
)

TASK = RegressionTask([[0.9, 0.3], [0.3, 0.6]], [[0.5, -0.2], [-0.2, 1.0]], 0.7, 0.4)
LENGTH = 7


def one_head(a, b):
    d = len(a)
    return Blocks(np.asarray(a), np.zeros(d), np.zeros(d), np.array(float(b)))


HEAD = one_head([[0.5, 0.3], [-0.3, 0.5]], 1.1)


def by_quadrature(task, head, length):
    """The mean over queries of two inputs by Gauss-Hermite nodes."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(16)
    g = np.stack(np.meshgrid(nodes, nodes[:8]), axis=-1).reshape(-1, 2)  # -x does as x does
    mass = np.outer(masses[:8], masses).ravel() * 2 / masses.sum() ** 2
    x = g @ np.linalg.cholesky(task.query_covariance).T
    s, t, n = task.covariance, task.weight_variance, task.label_noise
    outputs = x @ head.key_query.T @ s
    deviation = np.sqrt(np.sum(outputs * (x @ head.key_query.T), axis=1))
    along = outputs / deviation[:, None]  # covariance with the scores, these of variance one
    moments = prompt_moments(deviation, length)
    square = t * np.sum(along**2, axis=1)
    rest = (t * np.trace(s) - square + n) * moments.sum_of_squared_weights
    square = head.value_label**2 * (square * moments.output_second_moment + rest)
    square -= 2 * head.value_label * t * np.sum(along * x, axis=1) * moments.mean_output
    return mass @ (square + t * np.sum(x**2, axis=1)) / 2


def test_risk_against_quadrature():
    found = softmax_risk(TASK, HEAD, LENGTH)
    assert found.standard_error == 0
    assert found.risk == pytest.approx(by_quadrature(TASK, HEAD, LENGTH), rel=1e-6)  # of 16 nodes


def test_risk_against_simulated_prompts(simulate):
    simulation = simulate(TASK, LENGTH, 100_000, seed=1)
    risk = softmax_risk(TASK, HEAD, LENGTH).risk
    assert simulation.agrees(simulation.softmax(HEAD), risk)
    assert not simulation.agrees(simulation.softmax(HEAD), infinite_risk(TASK, HEAD))


def test_what_drew_queries_no_longer_means_anything():
    former: dict[str, Any] = {"queries": 8, "seed": 1}
    with pytest.warns(DeprecationWarning, match="queries"):
        found = softmax_risk(TASK, HEAD, LENGTH, **former)
    assert found == softmax_risk(TASK, HEAD, LENGTH)


def test_scores_wider_than_any_token_by_quadrature():
    task, head, length = RegressionTask(np.eye(1), label_noise=0.3), one_head([[30.0]], 0.02), 5
    x, masses = np.polynomial.legendre.leggauss(12)
    edges = np.concatenate([[0.0], np.geomspace(0.01, 8, 12)])
    half = np.diff(edges)[:, None] / 2
    z, weight = (edges[:-1, None] + half * (x + 1)).ravel(), (half * masses).ravel()
    weight = weight * 2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    moments = prompt_moments(30 * z, length)
    square = moments.output_second_moment + 0.3 * moments.sum_of_squared_weights
    expected = weight @ (0.02**2 * square - 2 * 0.02 * z * moments.mean_output + z**2) / 2
    assert softmax_risk(task, head, length).risk == pytest.approx(expected, rel=1e-8)


def test_one_token_and_equal_scores_average_labels():
    label = TASK.weight_variance * np.trace(TASK.covariance) + TASK.label_noise
    single = softmax_risk(TASK, HEAD, 1)
    assert single.risk == pytest.approx(TASK.risk_of_zero + 1.1**2 * label / 2, rel=1e-10)
    flat = softmax_risk(TASK, one_head(np.zeros((2, 2)), 1.1), LENGTH)
    assert flat.risk == pytest.approx(TASK.risk_of_zero + 1.1**2 * label / 2 / LENGTH, rel=1e-9)
    nothing = softmax_risk(TASK, HEAD._replace(value_label=np.array(0.0)), LENGTH)
    assert nothing.risk == TASK.risk_of_zero
    mirrored = HEAD._replace(key_query=-HEAD.key_query, value_label=-HEAD.value_label)
    expected = softmax_risk(TASK, HEAD, LENGTH).risk
    assert softmax_risk(TASK, mirrored, LENGTH).risk == pytest.approx(expected, rel=1e-12)


def test_long_prompts_have_the_risk_to_leading_order():
    head, length = HEAD._replace(key_query=0.4 * HEAD.key_query), 1e7
    expected = leading_order(TASK, head)
    found = softmax_risk(TASK, head, length)
    # the infinite risk is exact, so that what the length adds is as accurate as all of it
    assert length * (found.risk - expected.limit) == pytest.approx(expected.coefficient, rel=1e-3)
    limit = float(infinite_risk(TASK, HEAD))
    assert softmax_risk(TASK, HEAD, math.inf).risk == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize(
    ("head", "length", "name"),
    [
        (HEAD, 0.5, "length"),
        (HEAD, math.nan, "length"),
        (one_head(100 * np.eye(2), 1.0), 7, "key_query"),
        (one_head(np.eye(2), math.nan), 7, "value_label"),
        (HEAD._replace(label_row=np.ones(2)), 7, "label_row"),
        (HEAD._replace(value_inputs=np.ones(2)), 7, "value_inputs"),
        (one_head(np.eye(3), 1.0), 7, "key_query"),
        (Blocks(*(np.stack([block] * 2) for block in HEAD)), 7, "blocks"),
    ],
)
def test_bad_input(head, length, name):
    with pytest.raises(InvalidInputError, match=name):
        softmax_risk(TASK, head, length)
