"""NetCDF files written piece by piece, on disks that take all of it and on others."""

import errno
import os

import numpy as np
import pytest

from attractor.support.containers import read_netcdf
from attractor.support.errors import InvalidInputError, WriteError
from attractor.support.storage import writing_netcdf
from attractor.support.storage.streamed import _UnfailingStream


def write(path, pieces=20, **options):
    with writing_netcdf(path, needed=0, **options) as stored:
        stored.root.dimensions = {"row": None, "column": 1000}
        numbers = stored.root.create_variable("x", ("row", "column"), "f4", chunks=(1, 1000))
        for row in range(pieces):
            stored.root.resize_dimension("row", row + 1)
            numbers[row] = np.full(1000, row, dtype=np.float32)
            stored.check()


def limited(most):
    """A disk that takes so many bytes, and of what is too long as much as fits."""

    def put(stream, place, content):
        stream._file.seek(place)
        stream._file.write(content[: max(most - place, 0)])
        if place + len(content) > most:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return put


def test_pieces_become_an_array(tmp_path):
    write(tmp_path / "a.nc")
    found = read_netcdf(tmp_path / "a.nc")["x"].to_numpy()
    np.testing.assert_array_equal(found, np.repeat(np.arange(20.0)[:, None], 1000, axis=1))
    assert os.listdir(tmp_path) == ["a.nc"]


@pytest.mark.parametrize("most", [0, 100, 2_000, 10_000, 50_000, 80_000])
def test_a_disk_that_fills_on_the_way(tmp_path, monkeypatch, most):
    (tmp_path / "a.nc").write_bytes(b"what was there")
    monkeypatch.setattr(_UnfailingStream, "_put", limited(most))
    with pytest.raises(WriteError, match="No space left on device"):
        write(tmp_path / "a.nc")
    assert (tmp_path / "a.nc").read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == ["a.nc"]


def test_what_the_disk_did_not_take_is_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(_UnfailingStream, "_put", limited(10))
    with open(tmp_path / "expected", "w+b") as expected:
        stream = _UnfailingStream(tmp_path / "a")
        rng = np.random.default_rng(0)
        for _ in range(40):
            place, content = int(rng.integers(60)), rng.bytes(int(rng.integers(1, 20)))
            for file in (stream, expected):
                file.seek(place)
                assert file.write(content) == len(content)
        assert isinstance(stream.error, OSError)
        stream.seek(0)
        expected.seek(0)
        assert stream.read() == expected.read()
        stream.close()


def test_nothing_is_written_where_nothing_can_be(tmp_path):
    with pytest.raises(InvalidInputError, match="is a folder"), writing_netcdf(tmp_path, needed=0):
        raise AssertionError
