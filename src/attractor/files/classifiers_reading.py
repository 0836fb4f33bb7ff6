"""Reading files of classifier results."""

from __future__ import annotations

from pathlib import Path

from attractor.errors import FileFormatError
from attractor.files.classifiers_arrays import interpret_classifiers
from attractor.files.classifiers_loaded import LoadedClassifiers


def read_classifiers(file: Path) -> LoadedClassifiers:
    """Reads a NetCDF file of classifier results.

    Raises:
        InvalidInputError: If it holds something else, or a variable cannot be used.
        FileFormatError: If it is damaged or is no NetCDF file.
    """
    import h5py
    import xarray as xr

    try:
        h5py.File(file, "r").close()  # h5netcdf complains on its own where this fails
        with xr.open_dataset(file, engine="h5netcdf") as stored:
            data = stored.load()
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        raise FileFormatError(f"{file} is damaged or is no NetCDF file ({error}).") from None
    return interpret_classifiers(data, file.name)
