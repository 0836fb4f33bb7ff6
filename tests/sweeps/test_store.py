"""Stores are data: plain xarray reads them, damage is found, and nothing in them is run."""

import json
import shutil
import subprocess
import sys

import made_up
import pytest

from attractor.errors import AttractorError, FileFormatError, InvalidInputError
from attractor.sweeps import Grid, check_sweep, open_sweep, sweep, sweep_status

GRID = Grid({"n": [2, 4], "kind": ["fine", "well"]}, instances=3, chunk=2)
EXPERIMENT = made_up.experiment(cured=made_up.__file__)


@pytest.fixture
def path(tmp_path):
    sweep(GRID, EXPERIMENT, tmp_path / "s")
    return tmp_path / "s"


def test_plain_xarray_opens_it_without_attractor(path):
    code = f"""
import sys, warnings
warnings.simplefilter("error")
sys.modules["attractor"] = None
import xarray as xr
data = xr.open_zarr({str(path)!r}, chunks=None)
assert data["number"].dims == ("n", "kind", "instance", "seed"), data
assert data["flag"].dtype == "int8" and data["n"].to_numpy().tolist() == [2, 4]
assert data["kind"].attrs["flag_meanings"] == ["fine", "well"]
assert (data["chunk_record"].sel(field=0) == 1).all()
print(float(data["number"].sum()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == float(open_sweep(path)["number"].sum())


def test_reading_imports_nothing_that_the_store_names(path):
    described = json.loads((path / "zarr.json").read_text())
    described["attributes"]["attractor_sweep"]["experiment"]["name"] = "antigravity:run"
    (path / "zarr.json").write_text(json.dumps(described))
    code = f"""
import sys
from attractor.sweeps import check_sweep, open_sweep, sweep_status
open_sweep({str(path)!r}), sweep_status({str(path)!r}), check_sweep({str(path)!r})
try:
    check_sweep({str(path)!r}, again=1)
except ValueError as error:
    print(error)
print("antigravity" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "experiment: antigravity:run is none of the library, and a file does not say what to run."
        " Give the experiment again.",
        "False",
    ]


def change(path, **changes):
    described = json.loads((path / "zarr.json").read_text())
    described["attributes"]["attractor_sweep"].update(changes)
    (path / "zarr.json").write_text(json.dumps(described))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2}, {"axes": 3}, {"axes": {"n": []}}, {"instances": -1}, {"chunk": "a"},
        {"experiment": None}, {"experiment": {"measures": {}}}, {"instances": 10**9},
        {"axes": {"../..": [1]}}, {"instances": 4},
    ],
)  # fmt: skip
def test_a_damaged_description_is_one_error(path, changes):
    change(path, **changes)
    for read in (open_sweep, sweep_status, check_sweep):
        if read is sweep_status and changes == {"instances": 4}:
            continue  # which reads no array
        with pytest.raises(FileFormatError, match="is damaged or is no Zarr file"):
            read(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", "{", '{"attributes": []}'])
def test_what_is_no_description_is_one_error(path, content):
    (path / "zarr.json").write_text(content)
    with pytest.raises(AttractorError):
        open_sweep(path)


def test_arrays_of_other_codecs_are_not_read(path):
    file = path / "number" / "zarr.json"
    described = json.loads(file.read_text())
    described["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}},
                           {"name": "gzip", "configuration": {"level": 1}}]  # fmt: skip
    file.write_text(json.dumps(described))
    with pytest.raises(FileFormatError, match="number"):
        open_sweep(path)
    shutil.rmtree(path / "number")
    with pytest.raises(FileFormatError, match="number"):
        open_sweep(path)


def test_damaged_chunks_are_found_and_computed_again(path):
    before = {file.name: file.read_bytes() for file in (path / "number").glob("c.*")}
    (path / "number" / "c.0.1.0.0").write_bytes(b"nothing of the kind")
    chunk = bytearray((path / "coarse" / "c.1.0.1.0").read_bytes())
    shutil.copy(path / "coarse" / "c.1.0.0.0", path / "coarse" / "c.1.0.1.0")
    assert chunk != (path / "coarse" / "c.1.0.1.0").read_bytes()
    found = check_sweep(path)
    assert not found.passed and found.damaged == ((0, 1, 0, 0), (1, 0, 1, 0))
    assert "6 of 8 chunks are right" in str(found)
    check_sweep(path, discard=True)
    assert sweep(GRID, EXPERIMENT, path).computed == 2
    assert check_sweep(path).passed
    assert before == {file.name: file.read_bytes() for file in (path / "number").glob("c.*")}


def test_chunks_computed_again_have_the_same_bits(path, monkeypatch):
    found = check_sweep(path, again=5, experiment=EXPERIMENT)
    assert found.passed and found.again == 5 and "5 of 5 have the same bits" in str(found)
    with pytest.raises(InvalidInputError, match=r"^experiment: it is not that of the store"):
        check_sweep(path, again=5, experiment=made_up.PLAIN)
    real = made_up.run

    def other(point, instances, seeds, **settings):
        arrays = real(point, instances, seeds, **settings)
        changed = arrays["number"] * (1 + 2e-16 * (point["n"] == 4))
        return arrays | {"number": changed + 3e-16 * (point["n"] == 4)}

    other.__module__ = made_up.__name__
    monkeypatch.setattr(made_up, "run", other)
    monkeypatch.setattr("attractor.sweeps.experiment.source_of", lambda name: SOURCE)
    global SOURCE
    SOURCE = json.loads((path / "zarr.json").read_text())["attributes"]["attractor_sweep"][
        "experiment"
    ]["source"]
    found = check_sweep(path, again=100, experiment=EXPERIMENT)
    assert found.again == 8 and len(found.differing) == 4 and not found.passed
    assert all(place[0] == 1 for place in found.differing)
    monkeypatch.setattr("attractor.sweeps.check.processor_kind", lambda: 0)
    found = check_sweep(path, again=100, experiment=EXPERIMENT)
    assert len(found.elsewhere) == 4 and found.passed


def test_several_kinds_of_processors_are_named(path, monkeypatch):
    check_sweep(path)
    (path / "chunk_record" / "c.0.0.0.0.0").unlink()
    monkeypatch.setattr("attractor.sweeps.work.processor_kind", lambda: 0xABC)
    sweep(GRID, EXPERIMENT, path)
    found = sweep_status(path)
    assert found.processors["00000abc"] == 1 and len(found.processors) == 2
    assert "last bits differ between them" in str(found)


def test_there_must_be_a_store(tmp_path):
    for read in (open_sweep, sweep_status, check_sweep):
        with pytest.raises(InvalidInputError, match=r"^store: there is no store of a sweep at"):
            read(tmp_path / "nothing")
        with pytest.raises(InvalidInputError, match=r"^store: None is not a path"):
            read(None)


def test_what_killed_writes_left_does_no_harm(path):
    (path / "chunk_record" / "c.0.0.0.0.1a2b.partial").write_bytes(b"half")
    (path / "number" / "c.0.0.0.1a2b.partial").write_bytes(b"half")
    shutil.copy(path.parent / "s" / "zarr.json", path.parent / "s.failures.jsonl")
    assert sweep_status(path).done == 8 and check_sweep(path).passed
    assert sweep(GRID, EXPERIMENT, path).computed == 0
