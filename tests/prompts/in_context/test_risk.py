"""Risks of heads on in-context tasks, against the exact formulas of linear regression."""

import math

import jax
import numpy as np
import pytest

from attractor.prompts import AttentionHead, output
from attractor.prompts.in_context import LOGISTIC, SQUARED, LinearRegression, built_in, initial_head
from attractor.prompts.measures import Empirical
from attractor.prompts.regression import Blocks, RegressionTask, infinite_risk, softmax_risk
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

REGRESSION = RegressionTask([[0.9, 0.3], [0.3, 0.6]], [[0.5, -0.2], [-0.2, 1.0]], 0.7, 0.4)
LINEAR = LinearRegression(REGRESSION)
ONE_HEAD = Blocks(np.array([[0.5, 0.3], [-0.3, 0.5]]), np.zeros(2), np.zeros(2), np.array(1.1))
ALL = Blocks(
    np.array([[0.5, 0.3], [-0.3, 0.5]]), np.array([0.2, -0.1]), np.array([0.3, 0.4]), np.array(1.1)
)


def head_of(blocks):
    score, value = blocks.matrices()
    return AttentionHead(score, value[-1:])


@pytest.fixture(scope="module")
def sample():
    return LINEAR.sample(6000, 7, seed=1)


@pytest.mark.parametrize("blocks", [ONE_HEAD, ALL])
def test_the_infinite_risk_is_that_of_the_closed_form(sample, blocks):
    found = sample.risk(head_of(blocks), SQUARED)
    assert sample.exact and sample.limit_error(head_of(blocks), SQUARED) == 0
    expected = float(infinite_risk(REGRESSION, blocks))
    assert abs(found.value - expected) <= 4 * found.standard_error
    assert found.standard_error < 0.05 * expected


def test_the_risk_of_short_prompts_is_that_of_the_exact_average(sample):
    found = sample.risk(head_of(ONE_HEAD), SQUARED, 7)
    exact = softmax_risk(REGRESSION, ONE_HEAD, 7).risk
    assert abs(found.value - exact) <= 4 * found.standard_error


def test_given_the_task_predictions_are_exact(sample):
    """Of every task ``V Gamma_w U z``, and of prompts plain softmax attention."""
    head = head_of(ALL)
    parameters = LINEAR.parameters(6000, seed=1)
    covariance = REGRESSION.token_covariance(parameters)
    directions = sample.queries @ head.score_matrix.T
    predicted = np.einsum("m,tmn,tn->t", head.value_matrix[0], covariance, directions)
    losses = (predicted - sample.labels[:, 0]) ** 2 / 2
    assert sample.risk(head, SQUARED).value == pytest.approx(losses.mean(), rel=1e-12)
    law = Empirical(sample.prompts[0, :5])
    one = output(law, head, sample.queries[0])[0]
    first = LINEAR.sample(6000, 7, seed=1).losses_under(head, SQUARED, sample.law(5))[0]
    assert first == pytest.approx((one - sample.labels[0, 0]) ** 2 / 2, rel=1e-12)


def test_prompts_of_one_token_return_it(sample):
    head = initial_head(3)
    predicted = 0.5 * sample.prompts[:, 0, 2]
    expected = ((predicted - sample.labels[:, 0]) ** 2 / 2).mean()
    assert sample.risk(head, SQUARED, 1).value == pytest.approx(expected, rel=1e-12)


def test_scores_of_zero_average_and_huge_ones_select(sample):
    value = np.array([[0.3, -0.2, 1.0]])
    zero = sample.risk(AttentionHead(np.zeros((3, 3)), value), SQUARED, 5).value
    mean = sample.prompts[:, :5].mean(1) @ value[0]
    assert zero == pytest.approx(((mean - sample.labels[:, 0]) ** 2 / 2).mean(), rel=1e-12)
    huge = sample.risk(AttentionHead(1e7 * np.eye(3), value), SQUARED, 5).value
    best = np.einsum("tlm,tm->tl", sample.prompts[:, :5], sample.queries).argmax(1)
    taken = sample.prompts[np.arange(6000), best] @ value[0]
    assert huge == pytest.approx(((taken - sample.labels[:, 0]) ** 2 / 2).mean(), rel=1e-6)


def test_tokens_in_the_place_of_infinite_prompts_say_how_far_they_are_off():
    class Unknown(LinearRegression):
        def measure(self, parameters):
            return None

    head = head_of(ONE_HEAD)
    stand_in = Unknown(REGRESSION).sample(2000, 4, seed=2, limit_tokens=256)
    exact = LINEAR.sample(2000, 4, seed=2)
    assert not stand_in.exact
    off = stand_in.risk(head, SQUARED).value - exact.risk(head, SQUARED).value
    assert 0.3 * abs(off) < stand_in.limit_error(head, SQUARED) < 3 * abs(off)


def test_the_logistic_risk_is_between_that_of_zero_and_that_of_the_bayes_rule():
    task = built_in(2)["logistic"]
    sample = task.sample(2000, 4, seed=0)
    zero = AttentionHead(np.zeros((3, 3)), np.zeros((1, 3)))
    assert sample.risk(zero, LOGISTIC).value == pytest.approx(math.log(2), rel=1e-12)
    index = (task.parameters(2000, seed=0) * sample.queries[:, :2]).sum(1)
    bayes = np.logaddexp(0, -sample.labels[:, 0] * index).mean()
    assert bayes < sample.risk(initial_head(3, scale=1.0), LOGISTIC).value < math.log(2)


def test_shapes_and_lengths_that_do_not_fit_are_refused(sample):
    with pytest.raises(InvalidInputError, match="head"):
        sample.risk(initial_head(4), SQUARED)
    for length in (0, 8, 2.5, -math.inf, math.nan):
        with pytest.raises(InvalidInputError, match="length"):
            sample.risk(initial_head(3), SQUARED, length)


def test_the_gradient_of_the_average_is_that_of_differences(sample):
    from attractor.prompts.in_context.training import _compiled_risk

    head = head_of(ALL)
    u, v = np.asarray(head.score_matrix), np.asarray(head.value_matrix)
    with double_precision():
        data = jax.tree.map(np.asarray, (sample.law(7), sample.queries, sample.labels))
        _, (in_u, _) = _compiled_risk(SQUARED)(u, v, data)
    step = np.zeros((3, 3))
    step[0, 1] = 1e-5
    ends = [sample.risk(AttentionHead(u + s * step, v), SQUARED, 7).value for s in (1, -1)]
    assert float(in_u[0, 1]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7)
