"""Results on disk: labeled arrays in a NetCDF file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor.support.checks import check_path
from attractor.support.containers import read_netcdf
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import save_netcdf

if TYPE_CHECKING:
    import xarray as xr


def save_data(data: xr.Dataset, path: str | os.PathLike[str], kind: str) -> None:
    """Writes labeled arrays; the file appears whole or not at all.

    Args:
        data: The arrays.
        path: The file, ending in ``.nc``.
        kind: Their kind, which ``load_data`` checks.

    Raises:
        InvalidInputError: If it is no path, or the name ends in anything else.
    """
    path = check_path("path", path)
    ending = path.suffix
    if ending != ".nc":
        raise InvalidInputError("path", f"{os.fspath(path)} ends in {ending!r}", "Give .nc")
    save_netcdf(data.assign_attrs(kind=kind), path)


def load_data(path: str | os.PathLike[str], kind: str) -> xr.Dataset:
    """Reads what ``save_data`` wrote.

    Raises:
        InvalidInputError: If it is no path.
        FileFormatError: If the file is none, or of another kind.
    """
    path = check_path("path", path)
    data = read_netcdf(path)
    if data.attrs.pop("kind", None) != kind:
        raise FileFormatError(f"{os.fspath(path)} holds no {kind}.")
    return data
