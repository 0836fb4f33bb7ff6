import json

import numpy as np
import pytest
import xarray as xr

from attractor.cli.session import ExitCode
from attractor.maps.commands.basins import spanned_plane


@pytest.fixture
def prompt_file(tmp_path):
    """Two data sets, for a prompt in the plane."""
    path = tmp_path / "three.npz"
    keys = np.array([[[[-0.1, 1], [1, 0], [0, 0]]]] * 2)
    np.savez(path, keys=keys, scores=[[[1, 0.9, 0]], [[0, 1, 0]]], parameterization="p")
    return path


@pytest.mark.long
def test_counts_pictures_and_data_of_one_data_set(prompt_file, run_json, tmp_path):
    found, result = run_json(
        "basins", prompt_file, "--data-set", 0, "--starts", 50, "--scale", 2, "--steps", 500,
        "--map", "--extent", 2, "--resolution", 20, "--out", "here",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "Where 50 starts end" in result.stderr and "starts in a plane" in result.stderr
    best, other, rest = found["outcomes"]
    assert best["tokens"] == [[0]] and best["globally_optimal"] and best["locally_optimal"]
    assert other["tokens"] == [[1]] and not other["globally_optimal"]
    assert best["count"] + other["count"] + rest["count"] == found["starts"] == 50
    assert best["low"] < best["share"] < best["high"]
    folder = tmp_path / "here"
    assert {path.name for path in folder.iterdir()} == {
        "report.html", "shares.nc", "shares.png", "shares.svg", "map.nc", "map.png", "map.svg",
        "summary.json",
    }  # fmt: skip
    page = (folder / "report.html").read_text()
    assert f"{best['count']} of 50 random starts end on the globally optimal tokens" in page
    stored = json.loads((folder / "summary.json").read_text())
    assert stored["outcomes"] == found["outcomes"]
    with xr.open_dataset(folder / "map.nc", engine="h5netcdf") as data:
        part = float((data["basin"] == 0).mean())
        assert data["first"].values[-1] == pytest.approx(1.9)
    assert found["map"]["selections"][0]["part"] == pytest.approx(part)


def test_the_plane_is_that_of_the_two_solutions_most_starts_reach():
    solutions = np.array([[[3.0, 0], [0, 4]], [[1, 1], [1, 1]], [[0, 2], [0, 0]]])

    def plane(*counts):
        kept = slice(0, len(counts))
        data = xr.Dataset(
            {
                "solution": (("selection", "row", "column"), solutions[kept]),
                "count": ("outcome", [*counts, 100]),
            }
        )
        return spanned_plane(data)

    u, v = plane(5, 1, 3)
    np.testing.assert_allclose(u, solutions[0] / 5)
    np.testing.assert_allclose(v, solutions[2] / 2)
    u, v = plane(5, 6)
    np.testing.assert_allclose(u, np.full((2, 2), 0.5))
    np.testing.assert_allclose([(u * v).sum(), (v * v).sum()], [0, 1], atol=1e-12)
    assert np.linalg.matrix_rank(np.stack([u.ravel(), v.ravel(), solutions[0].ravel()])) == 2
    assert plane(5) is None


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        (("--scale", -1), "scale"),
        (("--data-set", 2), "data_set"),
        ((), "data_set"),
        (("--optimizer", "nowhere"), "optimizer"),
        (("--parameterization", "(v, p)"), "parameterization"),
        (("--loss", "hinge"), "loss"),
        (("--map", "--extent", 0), "extent"),
    ],
)
def test_bad_input(prompt_file, run_json, tmp_path, options, argument):
    chosen = options if "data_set" == argument else ("--data-set", 0, *options)
    found, result = run_json("basins", prompt_file, "--out", "here", *chosen)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument
    assert not (tmp_path / "here").exists()


def test_a_folder_of_somebody_else_is_refused(prompt_file, run_json, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("...")
    found, result = run_json("basins", prompt_file, "--out", "precious")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "out"
