import json

import pytest
import xarray as xr
from matplotlib.figure import Figure

from attractor.cli.session import ExitCode
from attractor.prompts import plots

FEW = ("--steps", 30, "--attention", "linear", "--dimension", 2)


@pytest.mark.long
def test_lengths_side_by_side(run_json, tmp_path):
    found, result = run_json("in-context", "--lengths", "4,6", "--out", "here", *FEW)
    assert result.exit_code == 0, result.stderr
    assert [row["length"] for row in found["runs"]] == [4, 6]
    assert found["runs"][0]["risk"] > found["runs"][1]["risk"] > 0
    assert {"b", "norm_A", "balance", "gap", "verdict"} < found["runs"][0].keys()
    assert len(found["references"]["linear"]) == 2
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert files == {
        "report.html", "summary.json", "runs.nc", "training.png", "training.svg", "lengths.png",
        "lengths.svg",
    }  # fmt: skip
    stored = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert stored["runs"] == found["runs"]
    with xr.open_dataset(tmp_path / "here" / "runs.nc") as data:
        assert data["length"].values.tolist() == [4, 6]
        assert data.sizes["step"] > 10


@pytest.mark.long
def test_the_published_experiment_says_what_is_unfinished(run, run_json, tmp_path, monkeypatch):
    # The pictures are those of the test above, and take longer than all the rest.
    monkeypatch.setattr(plots, "lengths_figure", lambda *_, **__: Figure())
    options = ("--experiment", "official", "--lengths", "inf", "--attention", "softmax")
    kept, report = tmp_path / "kept", tmp_path / "report"
    result = run("in-context", *options, "--steps", 2, "--checkpoint", kept, "--out", report)
    assert result.exit_code == 0, result.stderr
    assert "on the plateau" in result.stdout
    assert f"--checkpoint {kept} --steps 8" in result.stdout
    assert f"--out {report}-2" in result.stdout  # and not in place of the one just written
    assert (report / "report.html").exists()
    assert (kept / "softmax-inf").exists()
    with xr.open_dataset(report / "runs.nc") as data:
        assert data["length"].values.tolist() == [float("inf")]
    found, result = run_json("reproduce", report / "summary.json")
    assert result.exit_code == 0, result.stderr
    assert found["differing"] == {}


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        (("--lengths", "4,many"), "lengths"),
        (("--lengths", "0"), "lengths"),
        (("--attention", "relu"), "attention"),
        (("--data", "real"), "data"),
        (("--data", "as-run", "--dimension", 3), "data"),
        (("--experiment", "another"), "experiment"),
        (("--attention", "both", "--draw", "moments"), "draw"),
        (("--draw", "moments"), "draw"),
        (("--initialization", "zero"), "initialization"),
        (("--parameterization", "X"), "parameterization"),
        (("--correlation", 1.5), "correlation"),
    ],
)
def test_bad_input(run_json, tmp_path, options, argument):
    found, result = run_json("in-context", *options)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument
    assert not list(tmp_path.iterdir())


def test_a_folder_of_yours_is_left_alone(run_json, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter.txt").write_text("dear")
    _, result = run_json("in-context", "--out", "precious")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert (tmp_path / "precious" / "letter.txt").read_text() == "dear"
