"""NetCDF files: made in memory, then written as any other file.

HDF5 that cannot write what it has buffered, on a full disk, leaves objects behind that end the
process when they are collected.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attractor.storage.atomic import write_file

if TYPE_CHECKING:
    import xarray as xr


def save_netcdf(data: xr.Dataset | Mapping[str, xr.Dataset], path: str | os.PathLike[str]) -> None:
    """Writes labeled arrays, or groups of them by name; the file appears whole or not at all.

    Raises:
        InvalidInputError: If the destination cannot be used, as for ``atomic_file``.
        WriteError: If writing fails, on a full disk say; what was there stays as it was.
    """
    import h5netcdf
    import xarray as xr
    from xarray.backends import H5NetCDFStore

    groups: Mapping[Any, xr.Dataset] = {None: data} if isinstance(data, xr.Dataset) else data
    content = io.BytesIO()
    for number, (group, arrays) in enumerate(groups.items()):
        with h5netcdf.File(content, "a" if number else "w") as file:
            arrays.dump_to_store(H5NetCDFStore(file, group=group, mode="w"))
    write_file(path, content.getvalue())
