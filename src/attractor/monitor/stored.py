"""Records in NetCDF files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor.checks import check_path
from attractor.records import load_data, save_data

if TYPE_CHECKING:
    import xarray as xr

_KIND = "records of attention heads"


def save_records(data: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Writes records; the file appears whole or not at all.

    Raises:
        InvalidInputError: If the path does not end in .nc.
    """
    save_data(data, path, _KIND)


def load_records(path: str | os.PathLike[str]) -> xr.Dataset:
    """Reads a file that ``HeadMonitor.save`` wrote.

    Raises:
        FileFormatError: If it is none.
    """
    path = check_path("path", path)
    return load_data(path, _KIND)
