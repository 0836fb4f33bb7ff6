import math

import numpy as np
import pytest

from attractor.prompts.finite_length import prompt_moments
from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    infinite_risk,
    leading_order,
    opposite_heads,
    small_score_risk,
    softmax_risk,
)
from attractor.support.errors import InvalidInputError

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
    # the quadrature's error is that of 16 nodes
    assert found.risk == pytest.approx(by_quadrature(TASK, HEAD, LENGTH), rel=1e-6)


def test_risk_against_simulated_prompts(simulate):
    simulation = simulate(TASK, LENGTH, 100_000, seed=1)
    risk = softmax_risk(TASK, HEAD, LENGTH).risk
    assert simulation.agrees(simulation.softmax(HEAD), risk)
    assert not simulation.agrees(simulation.softmax(HEAD), infinite_risk(TASK, HEAD))


def several(*heads):
    return Blocks(*(np.stack(blocks) for blocks in zip(*heads, strict=True)))


PAIR = several(HEAD, one_head([[0.2, -0.4], [0.1, 0.6]], -0.7))


@pytest.mark.long
def test_risk_of_several_heads_against_simulated_prompts(simulate):
    simulation = simulate(TASK, LENGTH, 100_000, seed=2)
    trio = several(HEAD, one_head([[0.2, -0.4], [0.1, 0.6]], -0.7), one_head(np.zeros((2, 2)), 0.5))
    for heads in (PAIR, trio, opposite_heads(HEAD, 0.6)):
        risk = softmax_risk(TASK, heads, LENGTH, queries=4).risk
        assert simulation.agrees(simulation.softmax(heads), risk)
        assert not simulation.agrees(simulation.softmax(heads), infinite_risk(TASK, heads))


@pytest.mark.long
def test_error_is_that_between_seeds():
    found = [softmax_risk(TASK, PAIR, 50, queries=4, seed=seed) for seed in range(5)]
    spread = np.std([x.risk for x in found], ddof=1)
    stated = np.mean([x.standard_error for x in found])
    assert stated / 4 < spread < 4 * stated


def test_a_head_in_parts_is_that_head():
    whole = softmax_risk(TASK, HEAD, LENGTH).risk
    parts = several(*(HEAD._replace(value_label=np.array(b)) for b in (1.5, -0.4)))
    found = softmax_risk(TASK, parts, LENGTH)
    assert found.risk == pytest.approx(whole, rel=1e-10)
    assert found.standard_error == 0


def test_opposite_heads_of_small_scores_are_linear_attention():
    product = np.array([[0.5, 0.1], [0.0, 0.7]])
    risks = [
        softmax_risk(TASK, opposite_heads(one_head(product, 1.0), scale), LENGTH).risk
        for scale in (0.02, 0.04)
    ]
    limit = (4 * risks[0] - risks[1]) / 3  # errors are even in the scale
    assert limit == pytest.approx(small_score_risk(TASK, product, LENGTH), rel=1e-6)


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
    assert nothing.risk == pytest.approx(TASK.risk_of_zero, rel=1e-14)
    mirrored = HEAD._replace(key_query=-HEAD.key_query, value_label=-HEAD.value_label)
    expected = softmax_risk(TASK, HEAD, LENGTH).risk
    assert softmax_risk(TASK, mirrored, LENGTH).risk == pytest.approx(expected, rel=1e-12)


def test_long_prompts_have_the_risk_to_leading_order():
    length = 1e7
    one = HEAD._replace(key_query=0.4 * HEAD.key_query)
    for heads in (one, opposite_heads(one)):
        expected = leading_order(TASK, heads)
        added = softmax_risk(TASK, heads, length).risk - expected.limit
        # the infinite risk is exact, so that what the length adds is as accurate as all of it
        assert length * added == pytest.approx(expected.coefficient, rel=1e-3)
    assert softmax_risk(TASK, HEAD, math.inf) == (infinite_risk(TASK, HEAD), 0.0)


@pytest.mark.parametrize(
    ("head", "length", "queries", "name"),
    [
        (HEAD, 0.5, 8, "length"),
        (HEAD, math.nan, 8, "length"),
        (HEAD, 7, 12, "queries"),
        (HEAD, 7, 8.0, "queries"),
        (HEAD, 7, 2, "queries"),
        (one_head(100 * np.eye(2), 1.0), 7, 8, "key_query"),
        (one_head(np.eye(2), math.nan), 7, 8, "value_label"),
        (HEAD._replace(label_row=np.ones(2)), 7, 8, "label_row"),
        (HEAD._replace(value_inputs=np.ones(2)), 7, 8, "value_inputs"),
        (one_head(np.eye(3), 1.0), 7, 8, "key_query"),
        (several(HEAD, one_head(40 * np.eye(2), 1.0)), 7, 8, "key_query"),
    ],
)
def test_bad_input(head, length, queries, name):
    with pytest.raises(InvalidInputError, match=name):
        softmax_risk(TASK, head, length, queries=queries)
