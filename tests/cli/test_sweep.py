"""Sweeps from the command line: run, interrupted, resumed, checked and drawn."""

import json

import pytest
import xarray as xr

from attractor.cli.session import ExitCode
from attractor.support.errors import ClusterLostError

PLAN = """
experiment = "margins"
[axes]
n = [2, 4, 8]
d = [2, 3]
[trials]
instances = 6
chunk = 6
[settings]
T = 4
"""
FEASIBILITY = """
experiment = "margins"
[axes]
d = [2, 3]
n = [2, 6, 8, 12, 18, 24, 40]
[trials]
instances = 40
[settings]
T = 2
"""
FAILING = """
import numpy as np
from attractor.maps.sweeps import Experiment

def run(point, instances, seeds):
    if point["n"] == 2:
        raise ArithmeticError("two is too few")
    return {"x": np.ones((len(instances), len(seeds)))}

EXPERIMENT = Experiment("failing_of_the_command_line:run", {"x": ("f8", "one")}, ["n", "d"])
"""


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


@pytest.mark.long
def test_a_plan_is_run_once_and_drawn(run_json, run, plan, tmp_path):
    found, result = run_json("sweep", plan, "--store", "s.zarr")
    assert result.exit_code == found["exit_code"] == ExitCode.DONE
    assert (found["chunks"], found["computed"], found["done"], found["failed"]) == (6, 6, 6, 0)
    again, _ = run_json("sweep", "run", plan, "--store", "s.zarr")
    assert (again["computed"], again["done"]) == (0, 6)
    status, _ = run_json("sweep", "status", "s.zarr")
    assert status["command"] == "sweep status" and status["left"] == 0
    drawn, _ = run_json("sweep", "draw", "s.zarr", "--x", "n", "--y", "d", "--of", "feasible")
    assert (drawn["measured"], drawn["trials"]) == (36, 36)
    folder = tmp_path / "attractor-sweep"
    assert {file.name for file in folder.iterdir()} == {
        "map.png", "map.svg", "summary.json", "sweep.nc",
    }  # fmt: skip
    with xr.open_dataset(folder / "sweep.nc") as averages:
        assert averages["mean"].dims == ("n", "d")
        numbers = json.loads((folder / "summary.json").read_text())["points"]
        assert [one["mean"] for one in numbers] == averages["mean"].to_numpy().ravel().tolist()
    made, _ = run_json("reproduce", folder / "map.png", "--data", "s.zarr")
    assert made["same"] and made["compared"] > 40


def test_shares_make_a_whole(run_json, plan):
    first, _ = run_json("sweep", plan, "--store", "s.zarr", "--share", "0/2")
    assert 0 < first["done"] < first["chunks"]
    second, _ = run_json("sweep", plan, "--store", "s.zarr", "--share", "1/2")
    assert second["done"] == second["chunks"] == first["computed"] + second["computed"]


def test_options_may_stand_before_the_plan(run_json, plan):
    found, _ = run_json("sweep", "--store", "s.zarr", plan)
    assert found["done"] == found["chunks"]


def test_lines_are_drawn_of_what_is_there(run, run_json, plan, tmp_path):
    run("sweep", plan, "--store", "s.zarr", "--share", "0/3")
    drawn, result = run_json(
        "sweep", "draw", "s.zarr", "--x", "n", "--of", "margin", "--lines", "d", "--out", "lines"
    )
    assert drawn["measured"] < drawn["trials"] == 36
    assert "chunks are not done" in result.stderr
    assert (tmp_path / "lines" / "lines.svg").is_file()


@pytest.mark.long
def test_several_measures_are_lines_of_one_picture(run, run_json, plan, tmp_path):
    run("sweep", plan, "--store", "s.zarr")
    drawn, _ = run_json(
        "sweep", "draw", "s.zarr", "--x", "n", "--of", "margin,support", "--at", "d=3",
        "--lines", "measure",
    )  # fmt: skip
    assert drawn["of"] == "margin, support" and drawn["trials"] == 36
    with xr.open_dataset(tmp_path / "attractor-sweep" / "sweep.nc") as averages:
        assert averages["mean"].dims == ("measure", "n")
    again = run("reproduce", "attractor-sweep/lines.png", "--data", "s.zarr")
    assert again.exit_code == 0, again.stderr


def test_where_an_average_passes_a_level_is_drawn_as_lines(run, run_json, plan, tmp_path):
    run("sweep", plan, "--store", "s.zarr")
    place = ("sweep", "draw", "s.zarr", "--x", "d", "--of", "feasible", "--along", "n")
    drawn, _ = run_json(*place, "--levels", "0.4", "--side", "above")
    assert drawn["of"] == "feasible" and drawn["trials"] == 36
    summary = json.loads((tmp_path / "attractor-sweep" / "summary.json").read_text())
    assert summary["along"] == "n" and summary["places"] == [2, 4, 8]
    assert [point["d"] for point in summary["points"]] == [2, 3]
    assert run("reproduce", "attractor-sweep/lines.png", "--data", "s.zarr").exit_code == 0
    for wrong in (("--levels", "0.1,0.5"), ("--y", "n"), ("--side", "left")):
        assert run(*place, *wrong).exit_code == 2


@pytest.mark.long
def test_half_way_points_are_said_and_marked(run, run_json, plan, tmp_path):
    plan.write_text(FEASIBILITY)
    run("sweep", plan, "--store", "s.zarr")
    lines = ("sweep", "draw", "s.zarr", "--x", "n", "--of", "feasible", "--lines", "d")
    drawn = run(*lines, "--transition", "log", "--out", "lines")
    assert "d = 2: half-way at" in drawn.stdout and "width" in drawn.stdout
    summary = json.loads((tmp_path / "lines" / "summary.json").read_text())
    two, three = summary["transitions"]
    assert two["d"] == 2 and two["half_low"] < 8 < two["half_high"]  # Cover: 2 d^2
    assert three["d"] == 3 and three["half_low"] < 18 < three["half_high"]
    _, refused = run_json(*lines[:-2], "--y", "d", "--transition", "log")
    assert refused.exit_code == ExitCode.BAD_INPUT and "contours" in refused.stderr


def test_chunks_that_fail_end_in_a_code_of_their_own(run_json, plan, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing_of_the_command_line.py").write_text(FAILING)
    plan.write_text(PLAN.replace("[settings]\nT = 4\n", ""))
    own = ("--experiment", "failing_of_the_command_line:EXPERIMENT")
    found, result = run_json("sweep", plan, "--store", "s.zarr", *own)
    assert result.exit_code == found["exit_code"] == ExitCode.SOME_FAILED == 4
    assert (found["failed"], found["done"]) == (2, 4)
    assert "two is too few" in found["failures"][0]["error"]
    again, _ = run_json("sweep", plan, "--store", "s.zarr", *own)
    assert again["computed"] == 0
    retried, _ = run_json("sweep", plan, "--store", "s.zarr", *own, "--retry-failed")
    assert retried["computed"] == 2 and retried["failures"][0]["times"] == 2


def test_an_interrupted_sweep_says_how_to_go_on(run_json, plan, monkeypatch):
    from attractor.maps.sweeps import _sweep

    computed = []

    def run_chunk(*arguments):
        if len(computed) == 2:
            raise KeyboardInterrupt
        computed.append(arguments)
        return original(*arguments)

    original = _sweep.run_chunk
    monkeypatch.setattr(_sweep, "run_chunk", run_chunk)
    found, result = run_json("sweep", plan, "--store", "s.zarr")
    assert result.exit_code == found["exit_code"] == ExitCode.INTERRUPTED
    assert "the same command goes on from there" in result.stderr
    monkeypatch.setattr(_sweep, "run_chunk", original)
    rest, _ = run_json("sweep", plan, "--store", "s.zarr")
    assert rest["computed"] == 4 and rest["done"] == 6


def test_a_lost_cluster_is_no_bad_input(run_json, plan, monkeypatch):
    from attractor.maps.sweeps import _sweep

    def connected(cluster, patience):
        raise ClusterLostError("there was no worker for 60 s: call sweep again to go on")

    monkeypatch.setattr(_sweep, "connected", connected)
    found, result = run_json("sweep", plan, "--store", "s.zarr", "--cluster", "tcp://127.0.0.1:9")
    assert result.exit_code == found["exit_code"] == ExitCode.CLUSTER_LOST == 5
    assert "call sweep again" in found["error"]["message"] and "no worker" in result.stderr
    rest, _ = run_json("sweep", plan, "--store", "s.zarr")
    assert rest["computed"] == rest["done"] == 6


def test_the_example_is_a_plan(run, run_json, tmp_path):
    from attractor.maps.sweeps import load_plan

    found, _ = run_json("example", "sweep", "first.toml")
    assert load_plan(found["file"]).grid.trials == 300
    assert "first.zarr" in (tmp_path / "first.toml").read_text()
    refused, result = run_json("example", "sweep", "first.txt")
    assert result.exit_code == ExitCode.BAD_INPUT and refused["error"]["argument"] == "path"


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        (("nowhere.toml", "--store", "s"), "file", "attractor example sweep plan.toml"),
        (("plan.toml", "--store", "s", "--share", "2/2"), "share", "Count from 0: 0/2"),
        (("plan.toml", "--store", "s", "--share", "one"), "share", "Give I/N"),
        (("plan.toml", "--store", "s", "--share", "0/2", "--workers", "2"), "workers", "beside"),
        (("plan.toml", "--store", "plan.toml"), "store", ""),
        (("status", "nowhere.zarr"), "store", "no store of a sweep"),
        (("draw", "nowhere.zarr", "--x", "n", "--of", "x"), "store", "no store of a sweep"),
        (("draw", "s", "--x", "n", "--of", "x", "--at", "n"), "at", "AXIS=VALUE"),
        (("draw", "s", "--x", "n", "--of", "x", "--at", "n=1", "--at", "n=2"), "at", "twice"),
        (("draw", "s", "--x", "n", "--of", "x", "--levels", "a"), "levels", "numbers"),
        (("draw", "s", "--x", "n", "--of", "x", "--y", "d", "--lines", "d"), "lines", "--y"),
    ],
)
def test_bad_input_is_refused(run_json, plan, arguments, argument, words):
    found, result = run_json("sweep", *arguments)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument and words in result.stderr


def test_what_is_neither_a_plan_nor_a_command_is_no_riddle(run):
    result = run("sweep", "statsu", "s.zarr")
    assert result.exit_code == ExitCode.BAD_INPUT and "Did you mean status?" in result.stderr
    bare = run("sweep", "--help")
    assert "attractor sweep PLAN --store STORE" in bare.stdout


def test_a_store_is_checked(run_json, plan, tmp_path):
    run_json("sweep", plan, "--store", "s.zarr")
    found, result = run_json("sweep", "check", "s.zarr", "--again", 2)
    assert result.exit_code == ExitCode.DONE
    assert (found["read"], found["again"], found["passed"]) == (6, 2, True)
    chunk = next(file for file in (tmp_path / "s.zarr" / "margin").iterdir() if "c." in file.name)
    chunk.write_bytes(chunk.read_bytes()[:-1])
    found, result = run_json("sweep", "check", "s.zarr")
    assert result.exit_code == ExitCode.SOME_FAILED and len(found["damaged"]) == 1
    status, _ = run_json("sweep", "status", "s.zarr")
    assert (status["done"], status["left"], status["damaged"]) == (5, 1, 1)
    _, refused = run_json("sweep", "draw", "s.zarr", "--x", "n", "--y", "d", "--of", "margin")
    assert refused.exit_code == ExitCode.BAD_INPUT and "Run the sweep again" in refused.stderr
    mended, _ = run_json("sweep", plan, "--store", "s.zarr")
    assert (mended["computed"], mended["done"]) == (1, 6)
    assert run_json("sweep", "check", "s.zarr")[0]["passed"]
