"""Stores are data: plain xarray reads them, damage is found, and nothing in them is run."""

import json
import math
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import made_up
import numpy as np
import pytest
import xarray as xr

from attractor.maps.sweeps import Grid, check_sweep, open_sweep, sweep, sweep_status
from attractor.support.errors import AttractorError, FileFormatError, InvalidInputError

GRID = Grid({"n": [2, 4], "kind": ["fine", "well"]}, instances=3, chunk=2)
EXPERIMENT = made_up.experiment(cured=made_up.__file__)


@pytest.fixture
def path(tmp_path):
    sweep(GRID, EXPERIMENT, tmp_path / "s")
    return tmp_path / "s"


@pytest.mark.processes
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


@pytest.mark.processes
def test_reading_imports_nothing_that_the_store_names(path):
    described = json.loads((path / "zarr.json").read_text())
    described["attributes"]["attractor_sweep"]["experiment"]["name"] = "antigravity:run"
    (path / "zarr.json").write_text(json.dumps(described))
    code = f"""
import sys
from attractor.maps.sweeps import check_sweep, open_sweep, sweep_status
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
    monkeypatch.setattr("attractor.maps.sweeps.experiment.source_of", lambda name: SOURCE)
    global SOURCE
    SOURCE = json.loads((path / "zarr.json").read_text())["attributes"]["attractor_sweep"][
        "experiment"
    ]["source"]
    found = check_sweep(path, again=100, experiment=EXPERIMENT)
    assert found.again == 8 and len(found.differing) == 4 and not found.passed
    assert all(place[0] == 1 for place in found.differing)
    monkeypatch.setattr("attractor.maps.sweeps.storage.contents.processor_kind", lambda: 0)
    found = check_sweep(path, again=100, experiment=EXPERIMENT)
    assert len(found.elsewhere) == 4 and found.passed


def flip(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


DAMAGES = {
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "its header": lambda file: file.write_bytes(file.read_bytes()[:16]),
    "a bit": flip,
    "deleted": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "that of another": lambda file: shutil.copy(file.with_name("c.0.0.0.0"), file),
    "no file": lambda file: (file.unlink(), os.mkfifo(file)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_chunk_is_counted_refused_and_mended(path, damage):
    file = path / "number" / "c.1.0.0.0"
    before = file.read_bytes()
    DAMAGES[damage](file)
    status = sweep_status(path)
    assert (status.done, status.left) == (7, 1)
    assert status.damaged == ((1, 0, 0, 0),) and "computes them again" in str(status)
    data = open_sweep(path)
    assert data["number"].isel(n=0).notnull().all()
    for name in ("number", "flag"):  # which are of one chunk, with one checksum
        with pytest.raises(FileFormatError, match=r"chunk \(1, 0, 0, 0\) .* Run the sweep again"):
            data[name].load()
    again = sweep(GRID, EXPERIMENT, path)
    assert (again.computed, again.status.left) == (1, 0) and again.repaired == 1
    assert file.read_bytes() == before and open_sweep(path)["number"].notnull().all()


def test_a_share_mends_its_own_chunks_alone(path):
    for file in (path / "flag").glob("c.*"):
        file.unlink()
    first = sweep(GRID, EXPERIMENT, path, share=(0, 2))
    assert (first.computed, first.status.left) == (4, 4) and first.repaired == 4
    assert sweep(GRID, EXPERIMENT, path, share=(1, 2)).status.left == 0


@pytest.mark.parametrize("record", [[math.nan] * 5, [1, 0, -1, 0, 0], [7, 0, 0, 0, 0], [1]])
def test_a_damaged_record_is_none(path, record):
    (path / "chunk_record" / "c.0.0.0.0.0").write_bytes(np.array(record, "<f8").tobytes())
    assert sweep_status(path).left == 1
    assert np.isnan(open_sweep(path)["number"].isel(n=0, kind=0, instance=slice(2))).all()
    assert sweep(GRID, EXPERIMENT, path).computed == 1 and check_sweep(path).passed


def test_only_what_a_sweep_has_is_opened(path):
    """A large array that is all fill value takes no room on disk."""
    import zarr

    group = zarr.open_group(path, mode="a")
    group.create_array(
        "large", shape=(3 * 10**7,), chunks=(10**6,), dtype="f8", dimension_names=["large"]
    )
    open_sweep(path)
    tracemalloc.start()
    data = open_sweep(path)["number"].load()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.notnull().all() and most < 10**8


@pytest.mark.parametrize("number", ["instances", "seeds"])
def test_a_description_of_more_than_memory_holds_is_refused(path, number, monkeypatch):
    monkeypatch.setattr("attractor.support.memory.available_memory", lambda: 1e9)
    change(path, **{number: 2**31, "chunk": 2**31})
    for read in (open_sweep, sweep_status, check_sweep):
        with pytest.raises(InvalidInputError, match=r"2,147,483,648 trials at once .* of memory"):
            read(path)


SELECTIONS = [
    {"n": [1, 0, 0]}, {"instance": slice(None, None, -1)}, {"instance": slice(1, 3), "seed": 0},
    {"n": 1, "kind": -1}, {"instance": []}, {"n": xr.DataArray([0, 1], dims="p"),
    "instance": xr.DataArray([2, 0], dims="p")},
]  # fmt: skip


@pytest.mark.parametrize("selection", SELECTIONS)
def test_parts_are_those_of_the_whole(path, selection):
    part = open_sweep(path)["number"].isel(selection)
    assert part.identical(open_sweep(path)["number"].load().isel(selection))


def test_several_kinds_of_processors_are_named(path, monkeypatch):
    check_sweep(path)
    (path / "chunk_record" / "c.0.0.0.0.0").unlink()
    monkeypatch.setattr("attractor.maps.sweeps.work.processor_kind", lambda: 0xABC)
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


def test_a_measure_of_an_unknown_type_is_refused(path):
    described = json.loads((path / "zarr.json").read_text())
    experiment = described["attributes"]["attractor_sweep"]["experiment"]
    for measure in experiment["measures"].values():
        measure[0] = "O"
    (path / "zarr.json").write_text(json.dumps(described))
    with pytest.raises(FileFormatError, match="its measures are of unknown types"):
        open_sweep(path)
