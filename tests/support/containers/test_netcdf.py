"""NetCDF files as anybody may have written them."""

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr

from attractor.support.containers import netcdf_text, read_group, read_netcdf
from attractor.support.containers.hdf5 import check_hdf5
from attractor.support.errors import AttractorError, FileFormatError


@pytest.fixture
def file(tmp_path):
    data = xr.Dataset({"x": ("n", np.arange(3.0)), "s": ("n", ["a", "ü", "c"])}, attrs={"a": "b"})
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    return tmp_path / "a.nc"


def of_eight_terabytes(stored, _):
    stored.create_dataset("big", shape=(10**6, 10**6), dtype="f8", chunks=(100, 100))


def of_long_chunks(stored, _):
    one = stored.create_dataset("x2", shape=(10,), maxshape=(None,), dtype="f8", chunks=(2**28,))
    one.attrs["a"] = 1


def in_another_file(stored, folder):
    (folder / "secret").write_bytes(b"12345678")
    stored.create_dataset("x2", (1,), "f8", external=[(str(folder / "secret"), 0, 8)])


def behind_a_link(stored, folder):
    with h5py.File(folder / "other.nc", "w") as other:
        other["y"] = np.arange(3.0)
    stored["x2"] = h5py.ExternalLink(str(folder / "other.nc"), "/y")


def behind_a_soft_link(stored, _):
    stored["x2"] = h5py.SoftLink("/x")


def of_other_arrays(stored, folder):
    layout = h5py.VirtualLayout(shape=(3,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.nc"), "y", shape=(3,))
    stored.create_virtual_dataset("x2", layout)


def packed_by_a_plugin(stored, _):
    stored.create_dataset("x2", data=np.zeros(100), compression="lzf")


def of_no_utf8(stored, _):
    stored.attrs.create("a", b"\xff\xfe", dtype=h5py.string_dtype("utf-8"))


def without_a_shape(stored, _):
    stored["x2"] = h5py.Empty("f8")


def nested(stored, _):
    stored.create_group("/".join("abcdefghijklmnop"))


def of_wrong_times(stored, _):
    stored["x"].attrs["units"] = "days since yesterday"


HOSTILE = [
    of_eight_terabytes, of_long_chunks, in_another_file, behind_a_link, behind_a_soft_link,
    of_other_arrays, packed_by_a_plugin, of_no_utf8, without_a_shape, nested, of_wrong_times,
]  # fmt: skip


@pytest.mark.parametrize("change", HOSTILE)
def test_what_is_not_data_in_the_file_itself_is_refused(change, file, tmp_path):
    with h5py.File(file, "r+") as stored:
        change(stored, tmp_path)
    with pytest.raises(FileFormatError, match=r"a\.nc is damaged or is no NetCDF file"):
        read_netcdf(file)
    with pytest.raises(FileFormatError, match=r"a\.nc is damaged or is no NetCDF file"):
        read_group(file)


def test_what_is_whole_comes_back(file):
    data = read_netcdf(file)
    assert data["s"].values.tolist() == ["a", "ü", "c"] and data.attrs == {"a": "b"}
    np.testing.assert_array_equal(data["x"], np.arange(3.0))


def test_a_file_is_searched_once_for_as_long_as_it_stays_what_it_is(file, monkeypatch):
    from attractor.support.containers import netcdf_contents as netcdf

    searched = []
    check = netcdf.check_hdf5
    monkeypatch.setattr(netcdf, "check_hdf5", lambda file: (searched.append(file), check(file)))
    for _ in range(3):
        read_group(file)
    assert len(searched) == 1
    with h5py.File(file, "r+") as stored:
        stored.attrs.create("a", b"\xff\xfe", dtype=h5py.string_dtype("utf-8"))
    with pytest.raises(FileFormatError):
        read_group(file)
    assert len(searched) == 2


def test_a_long_axis_without_numbers_of_its_own(tmp_path):
    """NetCDF keeps its length as an array that declares more than any file has for it."""
    with h5netcdf.File(tmp_path / "a.nc", "w") as stored:
        stored.dimensions["n"] = 10**6
        stored.create_variable("x", ("n",), "i1")[...] = np.ones(10**6, np.int8)
    assert read_netcdf(tmp_path / "a.nc")["x"].sum() == 10**6


def test_a_group_is_read_alone(file, monkeypatch):
    inner = xr.Dataset({"y": ("n", np.ones(10**6))})
    inner.to_netcdf(file, group="a/b", mode="a", engine="h5netcdf")
    monkeypatch.setattr("attractor.support.memory.available_memory", lambda: 1e6)
    monkeypatch.setattr("attractor.support.memory._TRIFLE", 0)
    np.testing.assert_array_equal(read_group(file)["x"], np.arange(3.0))
    with pytest.raises(AttractorError, match=r"^file: .*MB|^file: .*GB"):
        read_group(file, "a/b")
    monkeypatch.setattr("attractor.support.memory.available_memory", lambda: 1e8)
    assert list(read_group(file, "a/b")) == ["y"]
    with pytest.raises(FileFormatError, match=r"a\.nc is damaged .*a/c cannot be read"):
        read_group(file, "a/c")


def test_more_than_fits_into_memory_is_refused(file, monkeypatch):
    with h5py.File(file, "r+") as stored:
        stored.create_dataset("z", data=np.zeros(10**7), compression="gzip")
    monkeypatch.setattr("attractor.support.memory.available_memory", lambda: 7e7)
    with pytest.raises(AttractorError, match=r"^file: .*0\.1 GB"):
        read_netcdf(file)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + bytes(9999)])
def test_what_is_no_file_of_the_kind(content, tmp_path):
    (tmp_path / "a.nc").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a\.nc is damaged"):
        read_netcdf(tmp_path / "a.nc")


def test_a_heap_of_texts_that_never_ends(file):
    """libhdf5 2.0 reads it for ever, where no signal reaches it."""
    content = bytearray(file.read_bytes())
    first = content.index(b"GCOL") + 16
    content[first : first + 16] = bytes(16)  # the first text is free space of no length
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match="do not lie one behind another"):
        read_netcdf(file)
    with pytest.raises(FileFormatError, match="do not lie one behind another"):
        netcdf_text(file, "a")


@pytest.mark.parametrize("where", ["an array", "one text", "many texts", "a list"])
def test_a_text_of_four_gigabytes(where, tmp_path):
    """libhdf5 takes the memory before it looks for the text."""
    file = tmp_path / "a.nc"
    with h5py.File(file, "w", libver="earliest") as stored:  # which has no checksums
        stored["s"] = ["a", "b"]
        stored.attrs["one text"] = "a"
        stored["s"].attrs["many texts"] = ["one", "two"]
        numbers = np.empty(1, object)
        numbers[0] = np.arange(3.0)
        stored["s"].attrs.create("a list", numbers, dtype=h5py.vlen_dtype(np.float64))
        place = stored["s"].id.get_offset()
    assert netcdf_text(file, "one text") == "a"
    content = bytearray(file.read_bytes())
    if where != "an array":
        after = content.index(where.encode() + b"\0")
        heaps = [at for at in range(len(content)) if content.startswith(b"GCOL", at)]
        found = [content.find(heap.to_bytes(8, "little"), after) for heap in heaps]
        place = min(at for at in found if at > 0) - 4  # the length stands before the place
    content[place : place + 4] = (2**32 - 1).to_bytes(4, "little")
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match="is longer than the file"):
        read_netcdf(file)


def test_settings_of_a_driver_of_four_gigabytes(file):
    """libhdf5 takes the memory when it opens the file."""
    content = bytearray(file.read_bytes())
    assert content[8] == 0 and content[48:56] == b"\xff" * 8
    content[48:56] = len(content).to_bytes(8, "little")
    content[40:48] = (len(content) + 16).to_bytes(8, "little")
    file.write_bytes(content + bytes(4) + (2**32 - 1).to_bytes(4, "little") + bytes(8))
    with pytest.raises(FileFormatError, match="one of several parts"):
        read_netcdf(file)


def test_arrays_without_the_names_of_their_axes_are_refused(tmp_path, monkeypatch):
    """As HDF5 says at times of damaged names; such an array fails wherever it is used."""
    import h5netcdf

    file = tmp_path / "a.nc"
    xr.Dataset({"x": ("n", np.arange(3.0))}).to_netcdf(file, engine="h5netcdf")
    monkeypatch.setattr(h5netcdf.core.BaseVariable, "dimensions", property(lambda variable: ()))
    with pytest.raises(FileFormatError, match=r"a\.nc .*axes of \w+ have no names"):
        read_netcdf(file)


def test_a_file_may_end_in_what_a_collection_begins_with(tmp_path):
    file = tmp_path / "a.nc"
    xr.Dataset({"x": ("i", [1.0])}).to_netcdf(file, engine="h5netcdf")
    file.write_bytes(file.read_bytes() + b"GCOL\x01")
    check_hdf5(file)
    file.write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match="not those of HDF5"):
        check_hdf5(file)
