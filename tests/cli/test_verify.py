import dataclasses
import shlex

import numpy as np
import pytest
import runs

import attractor as at
from attractor.cli.session import ExitCode
from attractor.cli.verdicts import longer_training
from attractor.training import Trajectory
from attractor.training.optimizers import named_optimizer


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.nc"
    runs.trajectory().save(path)
    return path


@pytest.mark.long
@pytest.mark.usefixtures("blank_pictures")  # as `check` draws them
def test_holds_a_run_against_what_it_reached(run_json, saved, tmp_path):
    found, result = run_json("verify", saved, "--out", tmp_path / "report")
    assert result.exit_code == 0
    assert 0.9 < found["verdict"]["margin_ratio"]["median"] <= 1
    assert (tmp_path / "report" / "report.html").is_file()
    again, _ = run_json("verify", tmp_path / "report")  # a report holds its run
    assert again["verdict"] == found["verdict"]


def test_writes_nothing_unless_told(run, saved, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert run("verify", saved).exit_code == 0
    assert sorted(tmp_path.iterdir()) == before


def test_in_a_norm_of_one_s_choice(run, run_json, saved):
    own, _ = run_json("verify", saved)
    chosen, _ = run_json("verify", saved, "--geometry", "l_inf")
    assert (own["verdict"]["geometry"], chosen["verdict"]["geometry"]) == ("frobenius", "l_inf")
    ratios = [found["verdict"]["margin_ratio"]["median"] for found in (own, chosen)]
    assert ratios[1] < ratios[0]
    text = " ".join(run("verify", saved, "--norm", "l_inf").stdout.split())
    assert "The norm, l_inf, was chosen; the one that training descended is frobenius." in text
    result = run("verify", saved, "--geometry", "round")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "error: norm: " in result.stderr and "round" in result.stderr


def test_not_a_run(run, file):
    for path in (file, "nowhere.nc"):
        result = run("verify", path)
        assert result.exit_code == ExitCode.BAD_INPUT
        assert "Traceback" not in result.output


def test_a_run_of_undefined_weights_is_bad_input(run, saved, tmp_path):
    trajectory = Trajectory.load(saved)
    W = trajectory.data["W"]
    undefined = dataclasses.replace(trajectory, data=trajectory.data.assign(W=W * np.nan))
    undefined.save(tmp_path / "undefined.nc")
    result = run("verify", tmp_path / "undefined.nc")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "no trial has a matrix of finite numbers" in result.stderr
    assert "feasible" not in result.output
    some = W.where(W["seed"] > 1)
    dataclasses.replace(trajectory, data=trajectory.data.assign(W=some)).save(tmp_path / "some.nc")
    result = run("verify", tmp_path / "some.nc")
    assert result.exit_code == 0
    assert "in the others, the matrix is not finite in 2 of 4" in " ".join(result.stdout.split())


def test_longer_training_is_the_training_of_the_run(run, saved):
    run_before = Trajectory.load(saved)
    words = shlex.split(longer_training(run_before))
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert words[:3] == ["attractor", "train", "tokens.npz"] and options["--steps"] == "1200"
    again = named_optimizer(options["--optimizer"])
    assert again.name == run_before.optimizer_name
    assert again.settings == run_before.settings["optimizer"]


@pytest.mark.long
def test_where_no_norm_is_known_one_is_asked_for(run_json, file, tmp_path):
    of_factors = ("--optimizer", "sign descent", "--parameterization", "KQ", "--steps", 5)
    found, _ = run_json("train", file, "--out", tmp_path / "kq.nc", "--seeds", 1, *of_factors)
    assert found["next"] == [f"attractor verify {tmp_path / 'kq.nc'} --norm frobenius"]
    found, result = run_json("verify", tmp_path / "kq.nc")
    assert result.exit_code == ExitCode.BAD_INPUT and "--norm frobenius" in found["error"]["remedy"]


def test_says_that_a_run_is_at_rest(run, run_json, tmp_path):
    tokens = at.Tokens([[[1.0], [-1.0]], [[0.6], [-0.8]]], [[1.0], [1.0]], [1, -1])
    path = tmp_path / "rest.nc"
    at.train(tokens, at.LinearHead([1.0]), at.gradient_descent(1.0), steps=2000).save(path)
    result = run("verify", path)
    assert result.exit_code == ExitCode.INFEASIBLE
    said = " ".join(result.stdout.split())
    assert "In 1 of 1 trials W is at rest at a finite minimum of the loss, of norm 0." in said
    assert "no matrix selects the tokens of highest score" in said
    assert "Training got" not in said and "longer training" not in said
    found, _ = run_json("verify", path)
    assert found["verdict"]["comparison"] == {"at rest at a finite minimum of the loss": 1}
    assert found["verdict"]["margin_ratio"]["median"] is None
    assert 0 < found["verdict"]["minimum_norm"]["median"] < 1


@pytest.mark.long
def test_says_of_a_run_that_has_only_begun_that_nothing_attracts(run, tmp_path):
    keys = [[[1.0, 0.0], [-1.0, 0.0]], [[0.6, 0.0], [-0.8, 0.0]]]
    tokens = at.Tokens(keys, [[1.0], [1.0]], [1, -1])
    path, slow = tmp_path / "begun.nc", at.gradient_descent(1e-3)
    start = np.array([[0.2], [0.5]])  # along the second axis nothing moves it
    at.train(tokens, at.LinearHead([1.0, 0.0]), slow, steps=100, initial=start).save(path)
    result = run("verify", path)
    said = " ".join(result.stdout.split())
    assert result.exit_code == 0 and "at rest" not in said
    assert "None of the selections reached is locally optimal" in said
    assert "longer training" in said
