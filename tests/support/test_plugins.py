"""What other distributions add, found as this one's own; broken ones are named and left out."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import attractor as at
from attractor.support.errors import AttractorWarning, InvalidInputError
from attractor.support.plugins import load_plugin, load_plugins, plugins

EXTENSION = Path(__file__).parents[2] / "examples" / "extension"


def describe(folder, name, groups):
    """The metadata that an installer leaves of a distribution."""
    place = folder / f"{name.replace('-', '_')}-0.1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in points.items()))
    ]
    (place / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def extended(tmp_path, monkeypatch):
    """The example's distribution installed, and one whose module is missing."""
    project = tomllib.loads((EXTENSION / "pyproject.toml").read_text())["project"]
    describe(tmp_path, project["name"], project["entry-points"])
    broken = {"attractor.commands": {"lost": "not_there:COMMAND"},
              "attractor.files": {"lost": "not_there:Kind"}}  # fmt: skip
    describe(tmp_path, "a-broken-one", broken)
    for folder in (tmp_path, EXTENSION):
        monkeypatch.syspath_prepend(str(folder))
    plugins.cache_clear()
    yield tmp_path
    plugins.cache_clear()


@pytest.fixture
def run(extended):
    """Runs the command line with both of them there."""

    def called(*words):
        paths = os.pathsep.join([str(extended), str(EXTENSION), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", "attractor", *words],
            capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths},
        )  # fmt: skip

    return called


@pytest.mark.processes
def test_a_command_of_another_distribution_is_one_like_any_other(run, tmp_path):
    assert run("example", "tokens", str(tmp_path / "a.npz")).returncode == 0
    done = run("norms", str(tmp_path / "a.npz"), "--json")
    margins = json.loads(done.stdout)["margins"]
    assert 0 < margins["nuclear"] < margins["frobenius"]
    shown = run("--help").stdout
    assert "norms          The largest margin of a token file in several norms." in shown
    assert "lost           cannot be loaded: there is no module not_there" in shown


@pytest.mark.processes
def test_a_broken_command_is_named_and_stops_no_other(run):
    done = run("lost")
    assert done.returncode != 0
    assert "a-broken-one" in done.stderr + done.stdout
    assert run("solve", "--help").returncode == 0


def test_a_kind_of_file_of_another_distribution_is_read(extended, tmp_path):
    arrays = {"preferred": np.eye(2), "other": np.zeros((2, 2)), "queries": np.ones((2, 1))}
    np.savez(tmp_path / "pairs.npz", **arrays)
    with pytest.warns(AttractorWarning, match=r"a-broken-one \(not_there:Kind\) raised"):
        loaded = at.load(tmp_path / "pairs.npz")
    assert type(loaded).__name__ == "Preferences"
    np.testing.assert_array_equal(loaded.preferred, np.eye(2))


def test_an_experiment_of_another_distribution_has_a_name_alone(extended, tmp_path):
    pytest.importorskip("zarr")
    experiment = at.maps.sweeps.built_in("support")
    grid = at.maps.sweeps.Grid({"n": [2], "T": [3], "d": [4]}, instances=3)
    at.maps.sweeps.sweep(grid, experiment, tmp_path / "store.zarr")
    found = at.maps.sweeps.open_sweep(tmp_path / "store.zarr")
    assert (found["support"] >= 1).all()


def test_no_name_of_the_library_is_taken(extended):
    describe(extended, "a-thief", {"attractor.commands": {"solve": "not_there:COMMAND"}})
    with pytest.warns(AttractorWarning, match="'solve' .* attractor has already; it is left out"):
        assert plugins("attractor.commands")["solve"].value.startswith("attractor.")


def test_what_is_broken_is_named(extended):
    with pytest.raises(InvalidInputError, match=r"'lost' of a-broken-one \(not_there:COMMAND\)"):
        load_plugin("attractor.commands", "lost")
    with pytest.raises(InvalidInputError, match="Did you mean norms"):
        load_plugin("attractor.commands", "norm")
    with pytest.warns(AttractorWarning, match="a-broken-one"):
        assert "lost" not in load_plugins("attractor.files")
