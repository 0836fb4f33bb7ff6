import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    infinite_risk,
    opposite_heads,
    softmax_risk,
)
from attractor.prompts.regression.risks.prompt_averages import (
    AveragedSoftmax,
    FiniteSoftmax,
    OneHead,
    OppositeHeads,
    Queries,
)
from attractor.support.precision import double_precision

LENGTH = 50


def random_task(d, seed):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((2, d, 2 * d)) / np.sqrt(2 * d)
    task = RegressionTask(
        factors[0] @ factors[0].T, factors[1] @ factors[1].T, weight_variance=0.7, label_noise=0.3
    )
    return task, 0.6 * rng.standard_normal((d, d)) / np.sqrt(d), 1.3


def hermite(d, count=60):
    """A tensor grid of queries."""
    x, weights = np.polynomial.hermite_e.hermegauss(count)
    points = np.array(list(itertools.product(x, repeat=d)))
    masses = np.prod(list(itertools.product(weights / weights.sum(), repeat=d)), axis=1)
    return Queries(points, masses)


@pytest.mark.parametrize("seed", range(3))
def test_risk_and_gradient_are_those_of_a_tensor_grid_of_queries(seed):
    task, a, b = random_task(2, seed)
    with double_precision():
        grid = FiniteSoftmax.of(task, LENGTH, hermite(2), 6.0)
        differentiated = jax.jit(jax.value_and_grad(grid.risk, argnums=(0, 1)))
        risk, (in_a, in_b) = differentiated(jnp.asarray(a), jnp.asarray(b))
    found = AveragedSoftmax(task, OneHead(LENGTH))(a, b)
    assert found.risk == pytest.approx(float(risk), rel=1e-7)
    np.testing.assert_allclose(found.key_query, in_a, rtol=1e-5, atol=1e-7)
    assert found.value_label == pytest.approx(float(in_b), rel=1e-6)


def test_ill_conditioned_covariance_against_drawn_queries():
    rng = np.random.default_rng(4)
    axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    task = RegressionTask(axes * np.geomspace(1e-3, 1, 6) @ axes.T)
    a = np.linalg.inv(task.covariance) / 60 + 0.1 * rng.standard_normal((6, 6))
    with double_precision():
        risk = jax.jit(lambda drawn: drawn.risk(jnp.asarray(a), jnp.asarray(2.0)))
        even = np.full(4096, 1 / 4096)
        drawn = [Queries(rng.standard_normal((4096, 6)), even) for _ in range(16)]
        sampled = [float(risk(FiniteSoftmax.of(task, LENGTH, each, 8.0))) for each in drawn]
    error = np.std(sampled, ddof=1) / 4
    found = AveragedSoftmax(task, OneHead(LENGTH))(a, 2.0).risk
    assert abs(found - np.mean(sampled)) < 4 * error
    assert error < 1e-2 * found


def test_gradient_is_that_of_the_risk_where_scores_have_few_directions():
    task, a, b = random_task(4, 7)
    a[:, 2:] = 0
    one = AveragedSoftmax(task, OneHead(5))
    rng, h = np.random.default_rng(0), 1e-4
    move = rng.standard_normal(a.shape)
    slope = (one(a + h * move, b).risk - one(a - h * move, b).risk) / (2 * h)
    assert np.sum(move * one(a, b).key_query) == pytest.approx(slope, rel=1e-5)


def test_no_scores_leave_the_mean_of_the_prompt():
    task, a, b = random_task(3, 1)
    label = 0.7 * np.trace(task.covariance) + 0.3
    found = AveragedSoftmax(task, OneHead(LENGTH))(0 * a, b)
    assert found.risk == pytest.approx(task.risk_of_zero + b**2 * label / LENGTH / 2, rel=1e-7)
    assert np.isfinite(found.key_query).all()


@pytest.mark.parametrize("d", [1, 4])
def test_small_scores_have_the_slope_of_plain_averages(d):
    task, a, b = random_task(d, 3)
    found = AveragedSoftmax(task, OneHead(2))(1e-8 * a, b)
    expected = -b * 0.7 * task.covariance @ task.query_covariance / 2
    np.testing.assert_allclose(found.key_query, expected, rtol=1e-5, atol=1e-6)


def test_infinite_prompts():
    task, a, b = random_task(3, 2)
    zeros = np.zeros(3)
    expected = float(infinite_risk(task, Blocks(a, zeros, zeros, np.array(b))))
    assert AveragedSoftmax(task, OneHead(np.inf))(a, b).risk == pytest.approx(expected, rel=1e-12)
    assert AveragedSoftmax(task, OneHead(1e12))(a, b).risk == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("length", [4, 1000])
def test_two_opposite_heads_have_their_risk_and_its_gradient(length):
    task, a, b = random_task(2, 5)
    a *= 0.4
    zeros = np.zeros(2)
    averaged = AveragedSoftmax(task, OppositeHeads(length))
    found = averaged(a, b)
    heads = opposite_heads(Blocks(a, zeros, zeros, np.array(b)))
    assert found.risk == pytest.approx(softmax_risk(task, heads, length).risk, rel=1e-7)
    h = 1e-4
    move = np.array([[0.3, -0.5], [0.8, 0.1]])
    steps = [averaged(a + sign * h * move, b + sign * h).risk for sign in (1, -1)]
    slope = np.sum(found.key_query * move) + found.value_label
    assert slope == pytest.approx((steps[0] - steps[1]) / (2 * h), rel=1e-5)
