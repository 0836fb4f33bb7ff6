"""NetCDF files as this library writes them: HDF5 that holds all its data itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from attractor.support.containers.damage import parsing

if TYPE_CHECKING:
    import xarray as xr


def read_netcdf(file: str | os.PathLike[str]) -> xr.Dataset:
    """Reads the labeled arrays of a file, of its outermost group, into memory.

    Raises:
        InvalidInputError: If there is less memory than they take.
        FileFormatError: If the file is damaged, or refers to anything outside of it.
    """
    with parsing(file, "NetCDF"):
        return _contents().one_group(file, "")


def read_groups(file: str | os.PathLike[str]) -> dict[str, xr.Dataset]:
    """Reads the labeled arrays of all groups of a file into memory, by their places in it.

    Returns:
        The arrays of each group, by names such as ``"attention/records"``; the outermost is
        ``""``.

    Raises:
        InvalidInputError: If there is less memory than they take.
        FileFormatError: If the file is damaged, or refers to anything outside of it.
    """
    with parsing(file, "NetCDF"):
        return _contents().whole(file)


def read_group(file: str | os.PathLike[str], group: str = "") -> xr.Dataset:
    """Reads the labeled arrays of one group of a file into memory, none of its others.

    Args:
        file: The file, which may be larger than memory.
        group: The place of the group in it; the outermost is ``""``.

    Raises:
        InvalidInputError: If there is less memory than the arrays of the group take.
        FileFormatError: If the file is damaged, refers to anything outside of it, or has no such
            group.
    """
    with parsing(file, "NetCDF", group):
        return _contents().one_group(file, group, checked=group)


def netcdf_text(file: str | os.PathLike[str], name: str) -> str | None:
    """A text that a file has for an attribute, or None.

    Raises:
        FileFormatError: If the file is damaged, or the attribute is no text.
    """
    with parsing(file, "NetCDF"):
        return _contents().text(file, name)


def _contents() -> Any:
    """The module that reads them, which takes long to load."""
    from attractor.support.containers import netcdf_contents

    return netcdf_contents
