"""Positions of training on the paper's data after published numbers of steps, in float64."""

import numpy as np
import pytest

import attractor as at
from attractor.papers.max_margin.data import (
    joint_training,
    one_sequence,
    three_sequences,
    two_scores,
)

STEP = at.normalized_gradient_descent(0.1)
STARTS = np.array([1, 0.5, 0, -0.5, -1, -1.5])


def positions(case, step, starts=None, optimizer=STEP, record=(199, 999), **other):
    starts = np.zeros((1, 2)) if starts is None else starts
    run = at.train(
        case.tokens,
        case.head,
        optimizer,
        steps=max(record),
        record=list(record),
        seeds=len(starts),
        initial=starts[None],
        parameterization="p",
        **other,
    )
    return run.W(step)[0, :, :, 0]


def test_equal_scores_in_one_sequence():
    case, starts = one_sequence(equal_scores=True), np.stack([0 * STARTS, STARTS], -1)
    found = positions(case, 199, starts)[[0, 1, 2, 4]]
    second = [20.3734, 19.8734, 19.3734, 18.3734]
    np.testing.assert_allclose(found, np.stack([np.full(4, -4.0439), second], -1), atol=1e-3)
    found = positions(case, 999, starts)[0]
    np.testing.assert_allclose(found, [-12.1635, 99.9597], atol=1e-3)


def test_unequal_scores_in_one_sequence():
    case, starts = one_sequence(equal_scores=False), np.stack([0 * STARTS, STARTS], -1)
    expected = [[-2.4019, 20.741], [-2.266, 20.2214], [-1.985, 19.6038], [19.7705, 0.5847]]
    np.testing.assert_allclose(positions(case, 199, starts)[[0, 1, 2, 4]], expected, atol=1e-3)
    np.testing.assert_allclose(positions(case, 999, starts)[0], [-10.448, 100.3352], atol=1e-3)


def test_three_sequences_by_normalized_and_by_constant_steps():
    case, starts = three_sequences(), np.stack([STARTS, 0 * STARTS], -1)
    expected = [
        [20.4977, 3.6091], [20.0033, 3.4788], [19.5059, 3.3468],
        [19.0053, 3.2132], [18.5013, 3.0780], [17.9941, 2.9415],
    ]  # fmt: skip
    np.testing.assert_allclose(positions(case, 199, starts), expected, atol=1e-3)
    norms = [
        np.linalg.norm(positions(case, step, starts, at.gradient_descent(1.0))[2])
        for step in (199, 999)
    ]
    np.testing.assert_allclose(norms, [3.8498, 5.2390], atol=1e-3)


@pytest.mark.parametrize("tight", [True, False])
def test_prompt_and_head_by_normalized_steps(tight):
    case = joint_training(all_labels_support=tight)
    run = at.train(
        case.tokens,
        at.LinearHead([-1.0, 0.0]),
        at.normalized_gradient_descent(0.1, per_factor=True),
        steps=9999,
        record=[50, 100, 199, 999],
        initial=np.array([0.0, -1.0]),
        parameterization="(v, p)",
    )
    p = run.data["p"].to_numpy()[0, 0]
    v = run.data["head_weight"].to_numpy()[0, 0]
    if tight:
        expected = [[3.0901, 0.6103], [7.9688, 1.6980], [17.5829, 4.0599]]
        np.testing.assert_allclose(v[2], [0.2219, 19.6808], atol=1e-3)
        limit = np.array([4, 1]) / 17**0.5
    else:
        expected = [[3.1134, 0.4167], [8.1125, 0.3375], [18.0124, 0.3019]]
        np.testing.assert_allclose(v[2], [0, 19.7131], atol=1e-3)
        limit = np.array([1.0, 0.0])
    np.testing.assert_allclose(p[:3], expected, atol=1e-3)
    assert p[-1] @ limit / np.linalg.norm(p[-1]) > 0.999999
    assert v[-1, 1] / np.linalg.norm(v[-1]) > 0.999999


@pytest.mark.parametrize(
    ("loss", "offsets"),
    [
        ("linear", {2: 0.3466, 5: 0.8047, 10: 1.1513, 100: 2.3026}),
        ("logistic", {2: -0.0603, 5: -1.0420, 10: -3.1921, 100: -47.0408}),
        ("exponential", {2: -0.1534, 5: -1.1953, 10: -3.3487, 100: -47.1974}),
    ],
)
def test_the_loss_decides_what_descent_leaves_behind(loss, offsets):
    for score, offset in offsets.items():
        found = positions(two_scores(score), 4000, record=(4000,), loss=loss)[0]
        assert found[1] == pytest.approx(offset, abs=1e-4)
