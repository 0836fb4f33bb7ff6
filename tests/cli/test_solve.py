import numpy as np
import pytest
import xarray as xr

from attractor.cli.session import ExitCode


def test_prints_the_matrix_and_its_certificate(run_json, file, tmp_path):
    found, result = run_json("solve", file, "--out", tmp_path / "W.nc")
    assert result.exit_code == 0
    assert found["status"] == "optimal"
    assert found["selection"] == [7, 4, 6, 1, 3, 2]
    assert found["gap"] < 1e-9
    assert np.linalg.norm(found["W"]) == pytest.approx(found["norm"])
    stored = xr.load_dataset(tmp_path / "W.nc", engine="h5netcdf")
    np.testing.assert_array_equal(stored.W, found["W"])


def test_infeasible(run_json, contradictory):
    found, result = run_json("solve", contradictory)
    assert result.exit_code == ExitCode.INFEASIBLE
    assert found["W"] is None
    assert len(found["conflicts"]) == 2
    assert "in conflict" in result.stderr


def test_unknown_norm(run, file):
    result = run("solve", file, "--norm", "euclid")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "frobenius" in result.stderr
