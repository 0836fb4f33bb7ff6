import json

import xarray as xr

from attractor.cli.session import ExitCode
from attractor.papers import get_claim

CLAIM = "mirror-descent/weight-sparsity"


def test_results_are_checked_by_the_claims_that_speak_of_them(run_json, tmp_path):
    get_claim(CLAIM).example().save(tmp_path / "results.nc")
    found, result = run_json(
        "claims", "--data", "results.nc", "--of", "mirror-descent", "--out", "report"
    )
    assert result.exit_code == 0, result.stderr
    outcomes = {name: each["outcome"] for name, each in found["claims"].items()}
    assert outcomes == {
        "mirror-descent/text-generalization": "holds",
        "mirror-descent/text-selection": "holds",
        "mirror-descent/weight-sparsity": "holds",
        "mirror-descent/vision-accuracy": "assumption not met",
        "mirror-descent/vision-sparsity": "assumption not met",
    }
    assert "mirror-descent/descent" not in outcomes and found["left_out"]
    assert "about data that are no file of classifier results" in " ".join(result.stderr.split())
    (table,) = found["hypotheses"]
    assert table["hypotheses"]["learned"]["met"]
    again, _ = run_json("reproduce", "report/claims.json", "--data", "results.nc")
    assert again["same"] and again["changed"] == []


def test_results_on_which_a_claim_fails_are_saved_as_results(run_json, tmp_path):
    case = get_claim(CLAIM).example()
    other = case.data.assign_coords(optimizer=["p = 2", "p = 1.1", "p = 3"])
    case.replace(data=other).save(tmp_path / "results.nc")
    found, result = run_json("claims", CLAIM, "--data", "results.nc", "--out", "report")
    assert result.exit_code == 0, result.stderr
    assert found["claims"][CLAIM]["outcome"] == "fails"
    file = tmp_path / "report" / found["claims"][CLAIM]["counterexample"]["file"]
    assert "read by: attractor claims --data report/counterexamples" in " ".join(
        result.stderr.split()
    )
    again, _ = run_json("claims", CLAIM, "--data", file, "--out", "again")
    assert again["claims"][CLAIM]["outcome"] == "fails"


def test_bad_files_are_refused_by_name(run, tmp_path):
    xr.Dataset({"loss": ("step", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    result = run("claims", "--data", "other.nc", "--json")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert json.loads(result.stdout)["error"]["argument"] == "optimizer"
    (tmp_path / "damaged.nc").write_bytes(b"\x89HDF\r\n\x1a\n and nothing more")
    result = run("claims", "--data", "damaged.nc", "--json")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "damaged" in json.loads(result.stdout)["error"]["message"]


def test_a_claim_about_tokens_is_not_checked_on_results(run_json, tmp_path):
    get_claim(CLAIM).example().save(tmp_path / "results.nc")
    found, result = run_json("claims", "max-margin/no-stationary-point", "--data", "results.nc")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "is a file of classifier results" in found["error"]["message"]
