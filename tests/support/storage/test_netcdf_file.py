"""What is looked up once is the same as what is looked up every time."""

import h5py
import numpy as np
import pytest

from attractor.support.storage.netcdf_file import open_netcdf


@pytest.fixture
def path(tmp_path):
    with open_netcdf(tmp_path / "some.nc", "w") as file:
        file.dimensions = {"row": 3}
        file.create_variable("value", ("row",), float)[:] = [1, 2, 3]
    return tmp_path / "some.nc"


def test_what_is_written_later_and_deleted_is_seen(path):
    with open_netcdf(path, "a") as file:
        stored = file._h5file
        assert stored["value"] is stored["value"]
        with pytest.raises(KeyError):
            stored["row of letters"]
        stored["row of letters"] = np.arange(3)
        assert stored["row of letters"].shape == (3,)
        del stored["row of letters"]
        with pytest.raises(KeyError):
            stored["row of letters"]
        stored["row of letters"] = np.arange(5)
        assert stored["row of letters"].shape == (5,)


def test_references_are_followed(path):
    with open_netcdf(path, "r") as file:
        stored = file._h5file
        assert stored[stored["value"].ref] == stored["value"]


def test_it_is_closed_whatever_happens(path):
    with pytest.raises(ValueError, match="own"), open_netcdf(path, "r") as file:
        stored = file._h5file
        raise ValueError("own")
    assert not stored
    with h5py.File(path, "a") as again:  # which HDF5 refuses while it is open to be read
        assert again["value"].shape == (3,)
