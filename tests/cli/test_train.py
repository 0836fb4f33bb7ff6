from attractor.cli.session import ExitCode
from attractor.training import Trajectory

QUICK = ("--steps", 50, "--seeds", 2, "--seed", 3)


def test_saves_a_run(run_json, file, tmp_path):
    found, result = run_json("train", file, "--out", tmp_path / "run.nc", *QUICK)
    assert result.exit_code == 0
    assert found["run"] == str(tmp_path / "run.nc")
    run = Trajectory.load(tmp_path / "run.nc")
    assert run.data["seed"].values.tolist() == [3, 4]
    assert run.steps[-1] == 50


def test_without_head(run, file, change):
    change(file, head=None)
    result = run("train", file, *QUICK)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "Add head (10,)" in result.stderr


def test_a_name_that_says_another_kind_of_file_is_refused(run_json, file, tmp_path):
    found, result = run_json("train", file, "--out", tmp_path / "run.txt", *QUICK)
    assert result.exit_code == ExitCode.BAD_INPUT and found["error"]["argument"] == "out"
    assert found["error"]["remedy"].endswith("run.nc")
    assert not (tmp_path / "run.txt").exists()
