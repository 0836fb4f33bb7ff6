"""Reading files of classifier results."""

from __future__ import annotations

from pathlib import Path

from attractor.containers import read_netcdf
from attractor.files.classifiers_arrays import interpret_classifiers
from attractor.files.classifiers_loaded import LoadedClassifiers


def read_classifiers(file: Path) -> LoadedClassifiers:
    """Reads a NetCDF file of classifier results.

    Raises:
        InvalidInputError: If it holds something else, or a variable cannot be used.
        FileFormatError: If it is damaged or is no NetCDF file.
    """
    return interpret_classifiers(read_netcdf(file), file.name)
