import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    drift_time,
    finite_flow,
    finite_prompt_limit,
    initial_scale_bounds,
    leading_order,
    linear_attention_risk,
    trained_limit,
)
from attractor.support.errors import InvalidInputError


def test_balanced_limit(correlated):
    limit = trained_limit(correlated)
    assert limit.blocks.value_label == pytest.approx(1.982408, abs=5e-7)
    assert limit.blocks.value_label == pytest.approx(15.444444444444445**0.25, rel=1e-12)
    inverse = np.linalg.inv(correlated.covariance)
    product = limit.blocks.value_label * limit.blocks.key_query
    np.testing.assert_allclose(product, inverse, atol=1e-14)
    assert limit.horizon == pytest.approx(1 / limit.blocks.value_label, rel=1e-12)
    assert abs(limit.blocks.balance) < 1e-13
    assert limit.risk == 0


@given(imbalance=st.floats(-1e6, 1e6), length=st.sampled_from([3.0, 50.0, math.inf]))
def test_imbalance_is_kept(imbalance, length):
    task = RegressionTask(np.diag([0.5, 2.0]), label_noise=0.3)
    limit = trained_limit(task, length, imbalance=imbalance)
    sizes = np.sum(limit.blocks.key_query**2) + limit.blocks.value_label**2
    assert abs(limit.blocks.balance - imbalance) < 1e-13 * sizes
    risk = linear_attention_risk(task, limit.blocks, length)
    assert risk == pytest.approx(limit.risk, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("dimension", "b"), [(5, 2.853), (2, 2.288)])
def test_finite_limits_do_not_tend_to_the_balanced_head(dimension, b):
    k = dimension / 2 + 1
    found = finite_prompt_limit(RegressionTask(3 * np.eye(dimension)))
    assert found == pytest.approx(b, abs=5e-4)
    assert found == pytest.approx(math.sqrt(1 + k + math.sqrt(1 + k * k)), rel=1e-13)


@pytest.mark.parametrize(
    "task",
    [
        RegressionTask(np.eye(1)),
        RegressionTask(1e3 * np.diag([1.0, 2.0, 4.0]), None, 0.2, 0.5),
        RegressionTask(np.diag([1.0, 2.0]), np.diag([1.0, 0.0])),
        RegressionTask.official(as_run=True),
    ],
)
def test_finite_limit_is_least_along_the_heads_without_risk(task):
    b = finite_prompt_limit(task)
    zeros, inverse = np.zeros(task.dimension), np.linalg.inv(task.covariance)

    def coefficient(value):
        head = Blocks(inverse / value, zeros, zeros, np.array(value))
        return leading_order(task, head).coefficient

    least = coefficient(b)
    for factor in (1 - 1e-5, 1 + 1e-5, 0.99, 1.3, 3.0):
        assert coefficient(factor * b) > least
    # second-order, so that the minimum is where the slope vanishes
    assert coefficient(b * (1 + 1e-6)) == pytest.approx(least, rel=1e-10)


def test_bounds_on_the_initial_scale(correlated):
    bounds = initial_scale_bounds(correlated.covariance)
    assert bounds.large_prompt == pytest.approx(0.41811, abs=5e-6)
    # one input of variance 1/4: the first bound is sqrt(2) * 4, the second sqrt(2) * 2
    small = initial_scale_bounds([[0.25]])
    assert small.large_prompt == pytest.approx(4 * math.sqrt(2))
    assert small.linear_attention == pytest.approx(2 * math.sqrt(2))
    finite = initial_scale_bounds([[0.25]], length=4)
    assert finite.linear_attention == pytest.approx(math.sqrt(2 / (0.25 * 1.25 + 0.25 / 4)))


def test_bad_input():
    with pytest.raises(InvalidInputError, match="imbalance"):
        trained_limit(RegressionTask(np.eye(2)), imbalance=math.nan)
    with pytest.raises(InvalidInputError, match="covariance"):
        initial_scale_bounds(np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match="last"):
        drift_time(RegressionTask(np.eye(2)), 1.6, 5.0)
    with pytest.raises(InvalidInputError, match="first"):
        drift_time(RegressionTask(np.eye(2)), -1.0, 1.7)


def test_drift_time_of_independent_inputs_in_closed_form():
    d, first, last = 3, 4.0, 3.0
    k = d / 2 + 1
    b = np.linspace(first, last, 2001)
    t = b**2
    # C = (d/2) (t - 1) (1 - 2/t)^-k, and dt/db = 2 b
    slope = d * b * (1 - 2 * k * (t - 1) / (t * (t - 2))) * (1 - 2 / t) ** -k
    expected = -np.trapezoid((1 + d / b**4) / slope, b)
    assert drift_time(RegressionTask(np.eye(d)), first, last) == pytest.approx(expected, rel=1e-5)


def test_drift_adds_up_and_is_instant_where_the_coefficient_is_infinite():
    task = RegressionTask(np.diag([1.0, 2.0]), label_noise=0.3)
    parts = [drift_time(task, *pair) for pair in ((1.5, 1.7), (1.7, 2.1), (1.5, 2.1))]
    assert parts[0] + parts[1] == pytest.approx(parts[2], rel=1e-6)
    assert drift_time(task, 1.0, 1.4) == 0  # b^2 below 2
    assert drift_time(task, 1.5, 1.5) == 0


@pytest.mark.slow
def test_flows_on_long_prompts_drift_at_this_pace():
    task = RegressionTask(np.diag([1.0, 2.0, 2.0]), weight_variance=0.5)
    value, length = 4.0, 1e6
    start = Blocks(
        np.linalg.inv(task.covariance) / value, np.zeros(3), np.zeros(3), np.array(value)
    )
    end = value + 0.6 * (finite_prompt_limit(task) - value)
    time = drift_time(task, value, end) * length
    flow = finite_flow(task, length, start, [0.0, time])
    assert flow.last.value_label == pytest.approx(end, rel=2e-3)
