import math

import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt.regression import (
    RegressionTask,
    kac_murdock_szego,
    linear_attention_optimum,
    train_in_context,
)
from attractor.prompt.regression.runs import official_experiment, train_at_lengths

TASK = RegressionTask(kac_murdock_szego(3, 0.5), label_noise=0.1, query_noise=0.1)
SETTINGS = {"parameterization": "blocks", "initialization": "balanced", "learning_rate": 0.02,
            "steps": 60, "record": [0, 40, 60]}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    settings = {"attentions": ("linear",), "checkpoint": folder / "kept", **SETTINGS}
    found = train_at_lengths(TASK, [8, math.inf], **settings)
    again = train_at_lengths(TASK, [8, math.inf], **settings)
    assert found.to_xarray().equals(again.to_xarray())
    return found


def test_each_run_is_the_one_that_is_trained_alone(runs):
    alone = train_in_context(TASK, length=8, attention="linear", **SETTINGS)
    assert alone.data.equals(runs.runs[0].data)
    data = runs.to_xarray()
    assert data["length"].values.tolist() == [8, math.inf]
    assert data["attention"].values.tolist() == ["linear", "linear"]
    np.testing.assert_array_equal(data["risk"].isel(run=0), alone.data["risk"])


def test_rows_and_table_say_where_runs_ended(runs):
    short, infinite = runs.rows()
    assert (short["length"], infinite["length"]) == (8, "inf")
    assert short["mean_squared_error"] == pytest.approx(2 * short["risk"] + 0.1)
    assert short["gap"] == pytest.approx(short["risk"] - linear_attention_optimum(TASK, 8).risk)
    assert infinite["verdict"] == "still falling: unfinished"
    assert len(runs.table().splitlines()) == 3
    assert "still falling" in str(runs)


def test_references_bound_what_can_be_reached(runs):
    found = runs.references()
    assert found["length"].values.tolist() == [8]
    assert float(found["ridge"][0]) < float(found["linear"][0]) < runs.rows()[0]["risk"]


def test_the_published_experiment_has_its_configuration():
    found = official_experiment(lengths=[math.inf], steps=2, as_run=False)
    softmax, linear = found.runs
    assert (softmax.settings["attention"], linear.settings["attention"]) == ("softmax", "linear")
    assert softmax.settings["seed"] == 327
    assert softmax.settings["parameterization"] == "factors"
    assert not softmax.settings["half"]
    assert softmax.settings["learning_rate"] == 1e-3
    assert found.task.query_noise == 0.1
    # On infinite prompts both are the same attention, and draw the same prompts.
    np.testing.assert_array_equal(softmax.data["key_query"], linear.data["key_query"])


@pytest.mark.parametrize("lengths, attentions, argument", [
    ([], ("softmax",), "lengths"),
    ([4, 4], ("softmax",), "lengths"),
    ([4], (), "attentions"),
    ([4], ("relu",), "attention"),
    ([0.5], ("softmax",), "length"),
])  # fmt: skip
def test_bad_input(lengths, attentions, argument):
    with pytest.raises(InvalidInputError) as error:
        train_at_lengths(TASK, lengths, steps=2, attentions=attentions)
    assert error.value.argument == argument
