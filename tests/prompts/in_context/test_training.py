"""Training on prompts of each length and on infinite ones, from one start."""

import math

import numpy as np
import pytest

from attractor.prompts import AttentionHead
from attractor.prompts.in_context import (
    SQUARED,
    RiskTransfer,
    TaskSample,
    built_in,
    initial_head,
    negative_controls,
    risk_transfer,
)
from attractor.prompts.in_context.training import gradient_flow
from attractor.prompts.measures import Gaussian
from attractor.prompts.regression import RegressionTask, infinite_flow
from attractor.support.errors import FileFormatError, InvalidInputError

TASKS = built_in(2)


@pytest.fixture(scope="module")
def noisy():
    return risk_transfer(TASKS["noisy"], (8, 64), (0, 1, 10), tasks=256, held_out=512)


@pytest.mark.long
def test_infinite_prompts_are_trained_as_the_exact_flow_says():
    """On tasks and queries whose moments are those of their law, the risk is the exact one."""
    corners = math.sqrt(2) * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], dtype=float)
    weights, inputs = (g.reshape(-1, 2) for g in np.broadcast_arrays(corners[:, None], corners))
    queries, labels = np.pad(inputs, ((0, 0), (0, 1))), (weights * inputs).sum(1, keepdims=True)
    covariance = RegressionTask(np.eye(2)).token_covariance(weights)
    law = Gaussian(np.zeros(3), np.eye(3))
    law = type(law).__new__(type(law))
    object.__setattr__(law, "_mean", np.zeros((16, 3)))
    object.__setattr__(law, "_covariance", covariance)
    sample = TaskSample(np.zeros((16, 1, 3)), queries, labels, law, True)
    times = np.array([0.0, 0.5, 2.0, 5.0])
    found = gradient_flow(sample, SQUARED, initial_head(3, scale=0.3), math.inf, times)
    exact = infinite_flow(RegressionTask(np.eye(2)), 0.3, times)
    np.testing.assert_allclose(found.score_matrix[:, :2, :2], exact.blocks.key_query, atol=2e-5)
    np.testing.assert_allclose(found.value_matrix[:, 0, 2], exact.blocks.value_label, atol=2e-5)
    np.testing.assert_allclose(found.risk, exact.risk, atol=2e-5)


def test_the_risk_on_long_prompts_is_nearer_to_that_on_infinite_ones(noisy):
    data = noisy.data
    short, long, infinite = (data.sel(length=length) for length in (8, 64, math.inf))
    assert float(short["excess"][-1]) > float(long["excess"][-1]) > 0
    assert (infinite["excess"] == 0).all() and (infinite["gap"] == 0).all()
    assert (short["gap"][1:] > long["gap"][1:]).all()
    np.testing.assert_array_equal(infinite["risk"], infinite["infinite_risk"])
    assert (data["training_risk"].diff("time") < 0).all()
    assert (data["limit_error"] == 0).all()


def test_all_start_from_one_head(noisy):
    for length in (8, 64, math.inf):
        head = noisy.head(length, 0)
        start = initial_head(3)
        np.testing.assert_allclose(head.score_matrix, start.score_matrix)
        np.testing.assert_allclose(head.value_matrix, start.value_matrix)


def test_it_prints_and_is_kept_in_a_file(noisy, tmp_path):
    text = str(noisy)
    assert "noisy labels" in text and "closed form" in text and text.count("\n") == 5
    noisy.save(tmp_path / "risks.nc")
    again = RiskTransfer.load(tmp_path / "risks.nc")
    assert str(again) == text
    noisy.data.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError):
        RiskTransfer.load(tmp_path / "other.nc")


@pytest.mark.parametrize(
    ("changes", "blamed"),
    [
        ({"lengths": ()}, "lengths"),
        ({"lengths": (8, 4)}, "lengths"),
        ({"lengths": (0,)}, "lengths"),
        ({"times": (0, 0)}, "times"),
        ({"times": (-1, 2)}, "times"),
        ({"tasks": 1}, "tasks"),
        ({"held_out": 0}, "held_out"),
        ({"initial": AttentionHead(np.eye(4), np.ones((1, 4)))}, "head"),
        ({"task": "linear"}, "task"),
    ],
)
def test_bad_arguments_are_refused(changes, blamed):
    settings = {"task": TASKS["noisy"], "lengths": (4,), "times": (0, 1), "tasks": 8, "held_out": 8}
    with pytest.raises(InvalidInputError) as caught:
        risk_transfer(**settings | changes)
    assert caught.value.argument == blamed


def test_heads_and_times_that_were_not_recorded_are_refused(noisy):
    with pytest.raises(InvalidInputError, match="length"):
        noisy.head(16)
    with pytest.raises(InvalidInputError, match="time"):
        noisy.head(8, 2.0)
    with pytest.raises(InvalidInputError, match="dimension"):
        initial_head(2, 2)


def test_a_flow_that_a_few_huge_tasks_make_stiff_is_given_up(monkeypatch):
    monkeypatch.setattr("attractor.prompts.in_context.training._MOST_GRADIENTS", 100)
    task = negative_controls(2)["Cauchy weights"]
    with pytest.raises(InvalidInputError, match=r"^times: the flow is too stiff"):
        risk_transfer(task, (8,), (0, 10), tasks=256, held_out=8)
