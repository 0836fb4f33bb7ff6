import math
from dataclasses import replace

import numpy as np
import pytest

from attractor.prompts.regression import (
    RegressionTask,
    kac_murdock_szego,
    linear_attention_optimum,
    train_in_context,
)
from attractor.prompts.regression.runs import InContextRuns, official_experiment, train_at_lengths
from attractor.support.errors import InvalidInputError

TASK = RegressionTask(kac_murdock_szego(2, 0.5))
SETTINGS = {"parameterization": "blocks", "initialization": "balanced", "learning_rate": 0.01,
            "half": True, "steps": 100, "record": [0, 66, 100]}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    settings = {"attentions": ("linear",), "checkpoint": folder / "kept", **SETTINGS}
    found = train_at_lengths(TASK, [4, 6], **settings)
    again = train_at_lengths(TASK, [4, 6], **settings)
    assert found.to_xarray().equals(again.to_xarray())
    return found


@pytest.fixture(scope="module")
def official():
    return official_experiment(lengths=[math.inf], steps=2)


@pytest.mark.long
def test_each_run_is_the_one_that_is_trained_alone(runs):
    alone = train_in_context(TASK, length=6, attention="linear", **SETTINGS)
    assert alone.data.equals(runs.runs[1].data)
    data = runs.to_xarray()
    assert data["length"].values.tolist() == [4, 6]
    assert data["attention"].values.tolist() == ["linear", "linear"]
    np.testing.assert_array_equal(data["risk"].isel(run=1), alone.data["risk"])


@pytest.mark.long
def test_runs_come_back_from_their_folder(runs, official, tmp_path):
    official.save(tmp_path / "new" / "runs")
    names = {file.name for file in (tmp_path / "new" / "runs").iterdir()}
    assert names == {"softmax-inf.nc", "linear-inf.nc"}
    read = InContextRuns.load(tmp_path / "new" / "runs")
    assert [run.settings["attention"] for run in read.runs] == ["softmax", "linear"]
    assert read.to_xarray().equals(official.to_xarray())
    assert read.task.equals(official.task)
    InContextRuns(runs.runs[::-1]).save(tmp_path)
    assert InContextRuns.load(tmp_path).to_xarray().equals(runs.to_xarray())


def test_a_folder_without_runs_or_of_two_tasks_is_refused(runs, tmp_path):
    with pytest.raises(InvalidInputError, match="holds no run"):
        InContextRuns.load(tmp_path / "nothing")
    one, other = runs.runs
    noisy = replace(other, task=replace(TASK, label_noise=0.1))
    InContextRuns((one, noisy)).save(tmp_path)
    with pytest.raises(InvalidInputError, match="different tasks"):
        InContextRuns.load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError) as error:
        runs.save(tmp_path / "file")
    assert error.value.argument == "folder"


def test_rows_and_table_say_where_runs_ended(runs, official):
    short, long = runs.rows()
    assert (short["length"], long["length"]) == (4, 6)
    assert short["mean_squared_error"] == pytest.approx(2 * short["risk"])
    assert short["gap"] == pytest.approx(short["risk"] - linear_attention_optimum(TASK, 4).risk)
    assert long["verdict"] == "still falling: unfinished"
    assert len(runs.table().splitlines()) == 3
    assert "still falling" in str(runs)
    infinite = official.rows()[1]
    assert infinite["length"] == "inf"
    assert infinite["mean_squared_error"] == pytest.approx(2 * infinite["risk"] + 0.1)


def test_references_bound_what_can_be_reached(runs):
    found = runs.references()
    assert found["length"].values.tolist() == [4, 6]
    for length, row in zip((4, 6), runs.rows(), strict=True):
        at = found.sel(length=length)
        assert float(at["ridge"]) < float(at["linear"]) < row["risk"]


def test_references_are_those_of_the_task(runs):
    noisy = RegressionTask(TASK.covariance, label_noise=0.1)
    found = InContextRuns(tuple(replace(run, task=noisy) for run in runs.runs)).references()
    assert float(found["linear"][0]) == pytest.approx(linear_attention_optimum(noisy, 4).risk)
    assert 0 < float(found["ridge"][1]) < float(found["ridge"][0])


def test_the_published_experiment_has_its_configuration(official):
    softmax, linear = official.runs
    assert (softmax.settings["attention"], linear.settings["attention"]) == ("softmax", "linear")
    assert softmax.settings["seed"] == 327
    assert softmax.settings["parameterization"] == "factors"
    assert not softmax.settings["half"]
    assert softmax.settings["learning_rate"] == 1e-3
    assert official.task.query_noise == 0.1
    # On infinite prompts both are the same attention, and draw the same prompts.
    np.testing.assert_array_equal(softmax.data["key_query"], linear.data["key_query"])


@pytest.mark.parametrize("lengths, attentions, argument", [
    ([], ("softmax",), "lengths"),
    ([4, 4], ("softmax",), "lengths"),
    ([4], (), "attentions"),
    ([4], ("relu",), "attention"),
    ([0.5], ("softmax",), "lengths"),
])  # fmt: skip
def test_bad_input(lengths, attentions, argument):
    with pytest.raises(InvalidInputError) as error:
        train_at_lengths(TASK, lengths, steps=2, attentions=attentions)
    assert error.value.argument == argument
