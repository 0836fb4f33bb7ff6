"""Records in NetCDF files."""

from __future__ import annotations

import os
from pathlib import Path

import xarray as xr

from attractor.errors import FileFormatError, InvalidInputError
from attractor.monitor.dataset import KIND
from attractor.storage import atomic_file


def save_records(data: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Writes records; the file appears whole or not at all.

    Raises:
        InvalidInputError: If the path does not end in .nc.
    """
    if Path(path).suffix != ".nc":
        raise InvalidInputError("path", f"it is {os.fspath(path)!r}", "Give a name ending in .nc")
    with atomic_file(path) as temporary:
        data.to_netcdf(temporary, engine="h5netcdf")


def load_records(path: str | os.PathLike[str]) -> xr.Dataset:
    """Reads a file that ``HeadMonitor.save`` wrote.

    Raises:
        FileFormatError: If it is none.
    """
    try:
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            data = stored.load()
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{os.fspath(path)} cannot be read: {error}") from error
    if data.attrs.get("kind") != KIND:
        raise FileFormatError(f"{os.fspath(path)} holds no records of attention heads.")
    return data
