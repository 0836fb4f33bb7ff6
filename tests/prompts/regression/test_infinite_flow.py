import math

import numpy as np
import pytest
import scipy.integrate

from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    balanced_initialization,
    infinite_flow,
    linear_attention_flow,
    trained_limit,
)
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def flow(correlated):
    return infinite_flow(correlated, 0.2, [0.0, 400.0], tolerance=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("scale", [0.2, pytest.param(5, marks=pytest.mark.slow)])
def test_balanced_starts_end_at_the_trained_head(correlated, flow, scale):
    limit = trained_limit(correlated).blocks
    path = flow if scale == 0.2 else infinite_flow(correlated, scale, [0.0, 400.0])
    assert path.last.value_label == pytest.approx(1.982408, abs=5e-7)
    assert np.linalg.norm(path.last.key_query - limit.key_query) < 1e-12
    assert np.abs(path.balance).max() < 1e-10
    assert path.risk[-1] < 1e-24


@pytest.mark.long
def test_times_to_small_risks(flow):
    times = [flow.time_to_risk(risk) for risk in (1e-1, 1e-2, 1e-4, 1e-8)]
    np.testing.assert_allclose(times, [4.83, 9.93, 20.28, 40.44], atol=0.01)


def test_independent_inputs():
    flow = infinite_flow(RegressionTask(np.eye(5)), 0.2, [0.0, 1.0, 3.0])
    np.testing.assert_allclose(flow.blocks.key_query[1], 0.5243 * np.eye(5), atol=5e-5)
    assert flow.blocks.value_label[1] == pytest.approx(1.1723, abs=5e-5)
    assert flow.risk[1] == pytest.approx(0.3714, abs=5e-5)
    assert flow.risk[2] == pytest.approx(1.7e-8, rel=0.05)


def test_flow_of_two_blocks_against_its_equations(correlated, rng):
    theta = rng.standard_normal((5, 3))
    start = balanced_initialization(correlated.covariance, 0.4, theta)
    queries = np.diag([1.0, 2.0, 0.5, 1.0, 0.0])
    task = RegressionTask(correlated.covariance, queries, weight_variance=0.6, label_noise=0.5)
    times = [0.5, 2.0]
    s = task.covariance

    def motion(_, point):
        a, b = point[:-1].reshape(5, 5), point[-1]
        rest = 0.6 * s @ (np.eye(5) - b * s @ a) @ queries
        return np.append(b * rest, np.sum(a * rest))

    begin = np.append(start.key_query, start.value_label)
    path = scipy.integrate.solve_ivp(motion, (0, 2), begin, "DOP853", times, rtol=1e-12, atol=1e-13)
    flow = infinite_flow(task, start, times)
    found = np.column_stack([flow.blocks.key_query.reshape(2, -1), flow.blocks.value_label])
    np.testing.assert_allclose(found, path.y.T, atol=1e-10)
    assert not flow.blocks.label_row.any()
    assert not flow.blocks.value_inputs.any()


@pytest.mark.parametrize("heads", [(), pytest.param((2,), marks=pytest.mark.slow)])
def test_all_blocks_keep_their_balance(correlated, heads):
    rng = np.random.default_rng(2)
    shapes = ((*heads, 5, 5), (*heads, 5), (*heads, 5), heads)
    start = Blocks(*(0.3 * np.asarray(rng.standard_normal(shape)) for shape in shapes))
    flow = infinite_flow(correlated, start, [0.0, 1.0, 3.0], tolerance=1e-11)
    np.testing.assert_allclose(flow.balance, np.stack([start.balance] * 3), atol=1e-8)
    assert (np.diff(flow.risk) < 0).all()
    assert np.abs(flow.last.label_row).max() > 1e-3


def rotated(variances, seed=0):
    axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(variances),) * 2))[0]
    covariance = axes @ np.diag(variances) @ axes.T
    return (covariance + covariance.T) / 2


@pytest.mark.long
@pytest.mark.parametrize(
    "covariance",
    [
        1e-8 * np.eye(2),
        1e-6 * np.eye(2),
        1e4 * np.eye(2),
        np.diag([0.01, 100.0]),
        np.diag([1e-4, 1e4]),
        rotated([0.01, 100.0]),
        rotated([1e-6, 1e-3, 1e-2]),
        rotated([1.0, 1e2, 1e5]),
    ],
    ids=lambda covariance: f"{np.linalg.eigvalsh(covariance).round(12).tolist()}",
)
def test_covariances_of_any_scale_and_condition_end_at_the_trained_head(covariance):
    task = RegressionTask(covariance)
    limit, last = trained_limit(task).blocks, infinite_flow(task, 0.1, [0.0, 1e40]).last
    # Rounding of the inverse, and errors of steps from a start that is longer than the limit.
    allowed = 1e-13 * np.linalg.cond(covariance) + 1e-11 * max(1, (0.1 / limit.value_label) ** 2)
    apart = np.linalg.norm(last.key_query - limit.key_query)
    assert apart <= allowed * np.linalg.norm(limit.key_query)
    assert last.value_label == pytest.approx(float(limit.value_label), rel=allowed)


def test_linear_attention_ends_at_its_optimum():
    task, length = RegressionTask.official(), 10
    flow = linear_attention_flow(task, 0.2, [5000.0], length, tolerance=1e-12)
    limit = trained_limit(task, length)
    assert np.linalg.norm(flow.last.key_query - limit.blocks.key_query) < 1e-10
    assert flow.risk[-1] == pytest.approx(limit.risk, rel=1e-12)
    assert abs(flow.balance[-1]) < 1e-10


def test_bad_input(correlated):
    with pytest.raises(InvalidInputError, match="key_query"):
        infinite_flow(correlated, balanced_initialization(np.eye(2), 0.1), [1.0])
    with pytest.raises(InvalidInputError, match=r"^initial: "):
        infinite_flow(correlated, -1.0, [1.0])
    with pytest.raises(InvalidInputError, match="length"):
        linear_attention_flow(correlated, 0.2, [1.0], 0)
    start = balanced_initialization(np.eye(5), 0.1)
    with pytest.raises(InvalidInputError, match="initial"):
        infinite_flow(correlated, start._replace(value_label=np.array(math.nan)), [1.0])
