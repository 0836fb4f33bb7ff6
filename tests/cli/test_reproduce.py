import json

import numpy as np
import pytest
import runs
import xarray as xr

from attractor.cli.session import ExitCode
from attractor.results.provenance import read_provenance

FEW = ("--steps", 100, "--seeds", 2)


@pytest.mark.long
@pytest.mark.usefixtures("blank_pictures")
def test_what_differs_is_named_and_nothing_else(run_json, file, change, tmp_path):
    _, result = run_json("check", file, "--out", "report", *FEW)
    assert result.exit_code == 0
    summary = tmp_path / "report" / "summary.json"
    contents = json.loads(summary.read_text())
    contents["verdict"]["trials"] = 3
    summary.write_text(json.dumps(contents))
    found, result = run_json("reproduce", "report/training.svg", "--data", file)
    assert result.exit_code == 0, result.stderr
    assert found["kind"] == "report" and found["compared"] > 20 and not found["changed"]
    assert found["differing"] == {"verdict.trials": "was 3 and is 2"}
    with np.load(file) as stored:
        change(file, keys=2 * stored["keys"])
    found, result = run_json("reproduce", "report/report.html", "--data", file)
    assert result.exit_code == 0
    assert not found["same"]
    assert any(words.startswith("the data were those of hash") for words in found["changed"])


@pytest.mark.long
@pytest.mark.usefixtures("blank_pictures")
def test_a_verified_run_comes_out_the_same(run_json):
    runs.trajectory().save("run.nc")
    verified, _ = run_json("verify", "run.nc", "--geometry", "l_3", "--out", "report")
    assert verified["verdict"]["geometry"] == "l_3"
    assert read_provenance("report/summary.json").arguments["geometry"] == "l_3"
    found, result = run_json("reproduce", "report/training.png")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "its command takes run" in found["error"]["message"]
    found, result = run_json("reproduce", "report/training.png", "--data", "run.nc")
    assert result.exit_code == 0, result.stderr
    assert found["same"] and found["name"] == "verify" and not found["changed"]


@pytest.mark.long
@pytest.mark.usefixtures("blank_pictures")
def test_basins_come_out_the_same(run_json, tmp_path):
    keys = np.array([[[-0.1, 1], [1, 0], [0, 0]]])
    np.savez(tmp_path / "tokens.npz", keys=keys, scores=[[1, 0.9, 0]], parameterization="p")
    few = ("--starts", 5, "--steps", 100, "--map", "--resolution", 3, "--seed", 4)
    run_json("basins", "tokens.npz", "--out", "here", *few)
    for name in ("shares.nc", "map.svg"):
        assert read_provenance(tmp_path / "here" / name).arguments["starts"] == 5
    found, result = run_json("reproduce", "here/shares.png", "--data", "tokens.npz")
    assert result.exit_code == 0, result.stderr
    assert found["same"] and found["name"] == "basins" and not found["changed"]


def test_a_file_that_says_nothing_is_refused(run_json, tmp_path):
    (tmp_path / "plain.json").write_text("{}")
    found, result = run_json("reproduce", "plain.json")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "file"


def test_a_figure_is_made_again_and_what_changed_is_named(run_json, tmp_path):
    run_json("figures", "max-margin/global-and-local", "--out", "drawn")
    picture = tmp_path / "drawn" / "max-margin" / "global-and-local.png"
    found, result = run_json("reproduce", picture)
    assert result.exit_code == 0, result.stderr
    data = xr.load_dataset(picture.with_suffix(".nc"), engine="h5netcdf")
    assert found["kind"] == "figure" and found["same"] and not found["changed"]
    assert found["compared"] == len(data.variables)
    data["path"][0, 0, 0, 3] += 0.5
    data.drop_vars("scores").to_netcdf(picture.with_suffix(".nc"), engine="h5netcdf")
    found, _ = run_json("reproduce", picture)
    assert set(found["differing"]) == {"path", "scores"}
    assert found["differing"]["path"] == "2 of 4344 differ, by up to 0.5"
    assert found["differing"]["scores"] == "is new"
    picture.with_suffix(".nc").write_bytes(b"no data")
    found, _ = run_json("reproduce", picture)
    assert "damaged" in found["error"]["message"]
    picture.with_suffix(".nc").unlink()
    found, _ = run_json("reproduce", picture)
    assert "Put global-and-local.nc into the same folder" in found["error"]["message"]
