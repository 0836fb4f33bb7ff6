import math

import numpy as np
import pytest

from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    finite_flow,
    finite_prompt_limit,
    infinite_flow,
    isotropic_finite_flow,
    kac_murdock_szego,
    opposite_heads,
    softmax_optimum,
    softmax_risk,
    train_in_context,
)
from attractor.support.errors import InvalidInputError


@pytest.mark.long
def test_independent_inputs_have_the_flow_of_two_numbers():
    times = [0.0, 1.0, 3.0, 300.0]
    flow = finite_flow(RegressionTask(np.eye(2), label_noise=0.2), 256, 0.3, times)
    expected = isotropic_finite_flow(2, 256, 0.3, times, label_noise=0.2)
    np.testing.assert_allclose(flow.blocks.value_label, expected.b, atol=1e-7)
    eye = np.broadcast_to(np.eye(2), (4, 2, 2))
    np.testing.assert_allclose(
        flow.blocks.key_query, expected.a[:, None, None] * eye, rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(flow.risk, expected.risk, atol=1e-7)


@pytest.mark.long
def test_infinite_prompts():
    task = RegressionTask(kac_murdock_szego(3, 0.5), np.diag([1.0, 2.0, 0.5]), label_noise=0.1)
    flow = finite_flow(task, math.inf, 0.2, [0.0, 2.0, 100.0])
    expected = infinite_flow(task, 0.2, [0.0, 2.0, 100.0])
    for found, wanted in zip(flow.blocks, expected.blocks, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-7)


@pytest.mark.parametrize("kind", ["rotated start", "other queries"])
def test_full_matrices_agree_with_differences_of_the_risk(kind):
    """No common axes: all of A moves; the flow's velocity is minus the gradient of the risk."""
    rng = np.random.default_rng(3)
    factor = rng.standard_normal((2, 4))
    queries = np.diag([2.0, 0.5]) if kind == "other queries" else None
    task = RegressionTask(factor @ factor.T / 4, queries)
    start = Blocks(0.25 * rng.standard_normal((2, 2)), np.zeros(2), np.zeros(2), np.array(0.7))
    h = 1e-3
    flow = finite_flow(task, 30, start, [0.0, 1.0 - h, 1.0, 1.0 + h])
    fall = (flow.risk[3] - flow.risk[1]) / (2 * h)
    moved = [(block[3] - block[1]) / (2 * h) for block in flow.blocks]
    speed = sum(float(np.sum(move**2)) for move in moved)
    assert fall == pytest.approx(-speed, rel=1e-5)
    assert np.abs(flow.blocks.key_query[2] - flow.blocks.key_query[2].T).max() > 1e-4


@pytest.mark.long
def test_drifts_to_the_best_head_of_a_correlated_covariance():
    task = RegressionTask(kac_murdock_szego(2, 0.7))
    flow = finite_flow(task, 1024, 0.2, [0.0, 1e6], tolerance=1e-8)
    best = softmax_optimum(task, 1024)
    assert flow.risk[-1] == pytest.approx(best.risk, rel=1e-8)
    assert flow.risk[-1] == pytest.approx(best.risk, rel=1e-3)
    assert flow.last.value_label == pytest.approx(best.blocks.value_label, rel=0.02)


@pytest.mark.slow
def test_long_prompts_end_at_the_limit_of_finite_prompts():
    task = RegressionTask(kac_murdock_szego(3, 0.5), 0.5 * np.eye(3), label_noise=0.4)
    flows = [finite_flow(task, length, 0.2, [0.0, 1e10]) for length in (1e5, 1e7)]
    gaps = [abs(flow.last.value_label / finite_prompt_limit(task) - 1) for flow in flows]
    # the widest axis of queries is near the horizon from where on the risk falls more slowly
    assert gaps[1] < 2e-3
    assert gaps[1] < 0.2 * gaps[0]


@pytest.mark.long
def test_with_the_value_fixed_long_prompts_end_near_the_one_perfect_head():
    task = RegressionTask(np.diag([1.0, 3.0]))
    start = Blocks(np.eye(2) / 10, np.zeros(2), np.zeros(2), np.array(2.5))
    gaps = []
    for length in (1e4, 1e6):
        flow = finite_flow(task, length, start, [0.0, 1e4], value="fixed", tolerance=1e-8)
        assert (flow.blocks.value_label == 2.5).all()
        gaps.append(np.abs(flow.last.key_query - np.linalg.inv(task.covariance) / 2.5).max())
    assert gaps[0] < 0.01
    assert gaps[1] < 0.03 * gaps[0]


def test_large_scores_extend_the_table():
    start = Blocks(np.full((1, 1), 1.0), np.zeros(1), np.zeros(1), np.array(0.3))
    flow = finite_flow(RegressionTask(np.eye(1)), 64, start, [0.0, 1.0])
    assert (np.diff(flow.risk) < 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("condition", [10.0, 1e3])
def test_training_on_drawn_prompts_follows_the_flow(condition):
    task = RegressionTask(np.diag(np.geomspace(1, 1 / condition, 3)), label_noise=0.1)
    rate, steps = 0.01, np.array([0, 200, 400])
    flow = finite_flow(task, 32, 0.4, rate * steps)
    run = train_in_context(
        task, length=32, parameterization="blocks", initialization="balanced", scale=0.4,
        half=True, learning_rate=rate, batch=512, steps=400, record=steps, seeds=4,
    )  # fmt: skip
    data = run.data.isel(head=0)
    for name in ("value_label", "key_query"):
        found, wanted = data[name], getattr(flow.blocks, name)
        error = found.std("seed", ddof=1) / 2
        off = np.abs(found.mean("seed") - wanted)
        # five errors of the mean of four, and a step of rate 0.01 in place of none
        np.testing.assert_array_less(off, 5 * error.max() + 0.01)
    risk = data["risk"].mean("seed")
    np.testing.assert_array_less(
        np.abs(risk - flow.risk), 5 * data["risk_error"].max() + 0.01 * flow.risk[0]
    )


def test_bad_input():
    task = RegressionTask(np.eye(2))
    two = Blocks(np.ones((2, 2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), np.ones(2))
    sees_labels = Blocks(np.eye(2), np.ones(2), np.zeros(2), np.array(1.0))
    for arguments, name in [
        ((task, 10, two, [1.0]), "initial"),
        ((task, 10, sees_labels, [1.0]), "label_row"),
        ((task, 0.5, 0.1, [1.0]), "length"),
        ((task, 10, -0.1, [1.0]), "initial"),
        ((task, 10, 1e3, [1.0]), "initial"),
        ((task, 10, 0.1, [1.0, 0.5]), "times"),
    ]:
        with pytest.raises(InvalidInputError, match=name):
            finite_flow(*arguments)
    with pytest.raises(InvalidInputError, match="value"):
        finite_flow(task, 10, 0.1, [1.0], value="frozen")


def test_two_opposite_heads_flow_down_the_risk_of_both():
    rng = np.random.default_rng(5)
    task = RegressionTask(np.array([[1.0, 0.4], [0.4, 0.7]]), np.diag([0.5, 1.0]), label_noise=0.2)
    one = Blocks(0.4 * rng.standard_normal((2, 2)), np.zeros(2), np.zeros(2), np.array(1.2))
    h = 1e-3
    flow = finite_flow(task, 12, opposite_heads(one), [0.0, 1.0 - h, 1.0, 1.0 + h])
    blocks = flow.blocks
    np.testing.assert_array_equal(blocks.key_query[:, 0], -blocks.key_query[:, 1])
    at_one = Blocks(*(block[2] for block in blocks))
    assert flow.risk[2] == pytest.approx(softmax_risk(task, at_one, 12).risk, rel=1e-7)
    fall = (flow.risk[3] - flow.risk[1]) / (2 * h)
    speed = sum(float(np.sum(((block[3] - block[1]) / (2 * h)) ** 2)) for block in blocks)
    assert fall == pytest.approx(-speed, rel=1e-5)


@pytest.mark.long
def test_opposite_heads_on_infinite_prompts():
    task = RegressionTask(kac_murdock_szego(2, 0.5))
    zeros = np.zeros(2)
    start = opposite_heads(Blocks(0.3 * np.eye(2), zeros, zeros, np.array(0.8)))
    flow = finite_flow(task, math.inf, start, [0.0, 2.0, 50.0])
    expected = infinite_flow(task, start, [0.0, 2.0, 50.0])
    for found, wanted in zip(flow.blocks, expected.blocks, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_nothing_moves_from_zero():
    zeros = np.zeros(2)
    start = Blocks(np.zeros((2, 2)), zeros, zeros, np.array(0.0))
    flow = finite_flow(RegressionTask(np.eye(2)), 10, start, [0.0, 5.0])
    assert not np.any(flow.last.key_query)
    assert flow.risk[-1] == flow.risk[0]
