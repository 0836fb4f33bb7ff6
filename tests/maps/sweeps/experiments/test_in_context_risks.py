"""Risks of in-context regression, beside the closed forms and the functions that they come from."""

import numpy as np
import pytest

from attractor.maps.sweeps import Grid, built_in
from attractor.papers.large_prompt.in_context_risks import EXACT, TRAINED, run
from attractor.prompts.regression import (
    RegressionTask,
    kac_murdock_szego,
    softmax_optimum,
    train_in_context,
)
from attractor.support.errors import InvalidInputError


def test_risks_are_those_of_the_task():
    found = run({"length": 16, "noise": 0.2}, np.array([0]), range(1), dimension=2)
    task = RegressionTask(kac_murdock_szego(2, 0.5), weight_variance=0.5, label_noise=0.2)
    risk = softmax_optimum(task, 16).risk
    assert found["softmax_risk"][0, 0] == risk
    covariance = kac_murdock_szego(2, 0.5)
    # One head of linear attention, from the normal equations of its three moments.
    moment = (1 + 1 / 16) * covariance + (2 + 0.2 / 0.5) / 16 * np.eye(2)
    linear = 0.5 * np.trace(covariance - np.linalg.solve(moment, covariance @ covariance)) / 2
    assert found["linear_risk"][0, 0] == pytest.approx(linear, rel=1e-12)
    assert found["softmax_over_linear"][0, 0] == pytest.approx(risk / linear, rel=1e-12)
    assert found["risk_of_zero"][0, 0] == pytest.approx(0.5)
    ordered = [found[name][0, 0] for name in ("ridge_risk", "linear_risk", "risk_of_zero")]
    assert ordered == sorted(ordered)
    assert set(found) == set(EXACT)


def test_an_instance_has_a_covariance_of_its_own():
    given = {"covariance": "random", "length": 16, "dimension": 2}
    several = run(given, np.array([4, 9]), range(1))
    alone = run(given, np.array([9]), range(1))
    assert all(np.array_equal(alone[name][0], several[name][1]) for name in EXACT)
    assert several["linear_risk"][0, 0] != several["linear_risk"][1, 0]
    assert several["risk_of_zero"] == pytest.approx(0.5)  # trace d, weights of variance 1/d


@pytest.mark.long
def test_trained_risks_are_those_of_training():
    given = {"dimension": 2, "length": 8, "steps": 5, "batch": 16}
    found = run({}, np.array([0]), range(2, 4), **given)
    task = RegressionTask(kac_murdock_szego(2, 0.5), weight_variance=0.5, label_noise=0.1)
    for attention in ("softmax", "linear"):
        trained = train_in_context(
            task, length=8, steps=5, attention=attention, parameterization="blocks",
            initialization="balanced", learning_rate=0.1, batch=16, seeds=2, seed=2, record=[5],
        )  # fmt: skip
        risks = trained.data["risk"].isel(step=-1).to_numpy()
        assert np.array_equal(found[f"trained_{attention}_risk"][0], risks)
    assert found["softmax_risk"][0, 0] == found["softmax_risk"][0, 1]
    assert set(found) == {*EXACT, *TRAINED}
    assert set(built_in("in_context_risks", steps=5).measures) == set(found)


@pytest.mark.long
def test_all_tasks_of_a_shape_are_trained_by_one_program(compiled):
    given = {"covariance": "random", "dimension": 2, "length": 8, "steps": 3, "batch": 12}
    others = {"learning_rate": 0.03, "noise": 0.4, "weight_variance": 0.7,
              "initialization": "default"}  # fmt: skip
    first = run({}, np.array([1]), range(1), ridge_samples=10, **given)
    before = compiled()
    several = run(others, np.array([2, 3]), range(1), ridge_samples=20, **given)
    assert before.count("jit(_advance)") == 2  # softmax and linear attention
    assert compiled() == before
    for name in {*EXACT, *TRAINED} - {"risk_of_zero", "softmax_status", "linear_status"}:
        assert len({first[name][0, 0], *several[name][:, 0]}) == 3
    assert first["risk_of_zero"] == pytest.approx(0.5)
    assert several["risk_of_zero"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("trials", "settings", "argument"),
    [
        ({"instances": 2}, {}, "instances"),
        ({"instances": 1, "seeds": 2}, {}, "seeds"),
        ({"instances": 2}, {"covariance": "random", "noise": -1}, "noise"),
    ],
)
def test_what_would_be_computed_twice_or_not_at_all_is_refused(trials, settings, argument):
    with pytest.raises(InvalidInputError) as refused:
        built_in("in_context_risks", **settings).check_grid(Grid({"length": [8]}, **trials))
    assert refused.value.argument == argument
