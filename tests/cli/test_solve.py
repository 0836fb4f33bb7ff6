import subprocess
import sys
from pathlib import Path

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
    assert max(found["norm"], found["norm_lower_bound"]) <= found["value"]
    stored = xr.load_dataset(tmp_path / "W.nc", engine="h5netcdf")
    np.testing.assert_array_equal(stored.W, found["W"])


def test_infeasible(run_json, contradictory):
    found, result = run_json("solve", contradictory)
    assert result.exit_code == ExitCode.INFEASIBLE
    assert found["W"] is None
    assert len(found["conflicts"]) == 2
    assert "in conflict" in result.stderr


@pytest.mark.parametrize("norm", ["euclid", "l_0.5", "schatten_nan", ""])
def test_unknown_norm(run, file, norm):
    result = run("solve", file, "--norm", norm)
    assert result.exit_code == ExitCode.BAD_INPUT
    for known in ("frobenius", "nuclear", "spectral", "l_<p>", "schatten_<p>"):
        assert known in result.stderr or "from 1 to inf" in result.stderr


@pytest.mark.parametrize("norm", ["nuclear", "spectral", "l_1", "l_inf", "l_1.5", "schatten_3"])
def test_every_norm(run_json, file, norm):
    found, result = run_json("solve", file, "--norm", norm)
    assert result.exit_code == 0
    assert found["geometry"] == norm
    assert found["status"] == "optimal"
    W = np.array(found["W"])
    values = np.array(found["singular_values"])
    norms = {
        "nuclear": values.sum(),
        "spectral": values.max(),
        "l_1": np.abs(W).sum(),
        "l_inf": np.abs(W).max(),
        "l_1.5": (np.abs(W) ** 1.5).sum() ** (1 / 1.5),
        "schatten_3": (values**3).sum() ** (1 / 3),
    }
    assert found["norm"] == pytest.approx(norms[norm], rel=1e-9)


def test_support_pairs_are_the_constraints_at_their_bound(run_json, file):
    found, _ = run_json("solve", file)
    with np.load(file) as stored:
        keys, queries = stored["keys"].astype(float), stored["queries"].astype(float)
    scores = np.einsum("ntd,de,ne->nt", keys, np.array(found["W"]), queries)
    at_bound = {
        (n, t)
        for n, chosen in enumerate(found["selection"])
        for t in range(keys.shape[1])
        if t != chosen and scores[n, chosen] - scores[n, t] < 1 + 1e-9
    }
    pairs = found["support"]
    assert {(pair["sequence"], pair["token"]) for pair in pairs} == at_bound
    assert all(pair["selected"] == found["selection"][pair["sequence"]] for pair in pairs)
    assert sum(pair["multiplier"] for pair in pairs) == pytest.approx(found["norm"], rel=1e-9)
    values = found["singular_values"]
    assert np.linalg.norm(values) == pytest.approx(found["norm"], rel=1e-9)
    assert found["rank"] == sum(value > 1e-9 for value in values)
    assert found["uniqueness"] == "unique"


def test_tables_fit_a_terminal(run, file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run("solve", file)
    assert result.exit_code == 0
    assert "Singular values" in result.stdout
    assert "Support tokens" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_several_data_sets(run_json, file, change):
    with np.load(file) as stored:
        change(file, **{name: np.stack([a, a]) for name, a in stored.items()})
    found, result = run_json("solve", file)
    assert result.exit_code == 0
    assert len(found["rank"]) == len(found["singular_values"]) == 2
    first, second = ([p for p in found["support"] if p["instance"] == i] for i in (0, 1))
    assert len(first) == len(second) > 0


@pytest.mark.processes
def test_certificate_file(run_json, run, file, change, contradictory, tmp_path):
    path = tmp_path / "solution.json"
    found, _ = run_json("solve", file, "--certificate", path)
    assert found["certificate"] == str(path)
    checker = Path(__file__).parents[2] / "tools" / "verify_certificate.py"
    checked = subprocess.run([sys.executable, checker, path], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "ACCEPTED" in checked.stdout
    found, result = run_json("solve", contradictory, "--certificate", path)
    assert result.exit_code == ExitCode.INFEASIBLE
    assert subprocess.run([sys.executable, checker, path], capture_output=True).returncode == 0
    with np.load(file) as stored:
        change(file, **{name: np.stack([a, a]) for name, a in stored.items()})
    result = run("solve", file, "--certificate", path)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "2 data sets" in result.stderr


def test_a_selection_for_a_single_sequence(run_json, tmp_path):
    keys = np.array([[[2.0, 1.0], [0.0, 0.0], [1.0, 2.0]]])
    np.savez(tmp_path / "one.npz", keys=keys, queries=[[1.0, 0.0]], labels=[1])
    found, result = run_json("solve", tmp_path / "one.npz", "--selection", "2")
    assert result.exit_code == 0, result.stderr
    assert found["selection"] == [2]
    assert (keys[0] @ np.array(found["W"])[:, 0]).argmax() == 2


@pytest.mark.parametrize(
    ("given", "selection"),
    [("2,1", [[2, 1], [2, 1]]), ("2,1,0,2", [[2, 1], [0, 2]])],
    ids=["one for all", "one for each"],
)
def test_a_selection_for_several_data_sets(run_json, tmp_path, given, selection):
    corners = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]])
    keys = np.broadcast_to(corners, (2, 2, 3, 2))
    queries = np.broadcast_to(np.eye(2), (2, 2, 2))
    np.savez(tmp_path / "two.npz", keys=keys, queries=queries, labels=np.ones((2, 2)))
    found, result = run_json("solve", tmp_path / "two.npz", "--selection", given)
    assert result.exit_code == 0, result.stderr
    W = np.array(found["W"])
    assert (keys @ W[:, None] @ queries[..., None])[..., 0].argmax(-1).tolist() == selection


@pytest.mark.parametrize("option", ["--out", "--certificate"])
def test_refuses_a_place_that_cannot_be_written_before_solving(run_json, file, option):
    found, result = run_json("solve", file, option, file / "below.nc")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == option.removeprefix("--")
    assert "norm" not in found


def test_tokens_named_need_neither_labels_nor_a_head(run_json, file, change):
    with_labels, _ = run_json("solve", file)
    change(file, labels=None, head=None)
    kept = ",".join(map(str, with_labels["selection"]))
    found, result = run_json("solve", file, "--selection", kept)
    assert result.exit_code == 0, result.stderr
    assert found["W"] == with_labels["W"]
    change(file, selection=with_labels["selection"])
    assert run_json("solve", file)[0]["W"] == with_labels["W"]


def test_many_singular_values_are_counted(run, tmp_path):
    rng = np.random.default_rng(0)
    keys, queries = rng.normal(size=(2, 3, 12)), rng.normal(size=(2, 12))
    np.savez(tmp_path / "wide.npz", keys=keys, queries=queries, selection=[0, 1])
    result = run("solve", tmp_path / "wide.npz")
    assert "and 2 more, which --json prints" in " ".join(result.stdout.split())
